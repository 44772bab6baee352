package dnsserver

import (
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/http2"

	"github.com/coredns/coredns/test/clients"
)

// TestH2Windows has a client that lets replies in by the spoonful.
func TestH2Windows(t *testing.T) {
	s := h2Server(t, nil)
	p := rawH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	p.post(1, "www.")
	h, ok := p.until().(*http2.MetaHeadersFrame)
	if !ok || h.PseudoValue("status") != "200" {
		t.Fatal("no HEADERS frame")
	}
	var body []byte
	take := func(n int) {
		t.Helper()
		d, ok := p.until().(*http2.DataFrame)
		if !ok || d.StreamID != 1 || len(d.Data()) != n {
			t.Fatalf("got %v, want %d octets", d, n)
		}
		body = append(body, d.Data()...)
	}
	take(10)
	p.framer.WriteWindowUpdate(1, 5)
	take(5)
	p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 12}) // two more for each stream
	take(2)
	p.post(3, "www.")
	if h, ok := p.until().(*http2.MetaHeadersFrame); !ok || h.StreamID != 3 {
		t.Fatal("the other stream is held up")
	}
	if d, ok := p.until().(*http2.DataFrame); !ok || d.StreamID != 3 || len(d.Data()) != 12 {
		t.Fatalf("got %v", d)
	}
	p.framer.WriteWindowUpdate(1, 1000)
	d, ok := p.until().(*http2.DataFrame)
	if !ok || d.StreamID != 1 || !d.StreamEnded() {
		t.Fatalf("got %v", d)
	}
	if m := new(dns.Msg); m.Unpack(append(body, d.Data()...)) != nil || len(m.Answer) != 1 {
		t.Errorf("got %v", m)
	}
}

// TestH2ConnectionWindow fills the connection's window with replies.
func TestH2ConnectionWindow(t *testing.T) {
	s := h2Server(t, nil)
	p := rawH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	total, id := 0, uint32(1)
	for ; total < h2Window; id += 2 {
		p.post(id, "long.")
		if _, ok := p.until().(*http2.MetaHeadersFrame); !ok {
			t.Fatal("no HEADERS frame")
		}
		total += len(p.until().(*http2.DataFrame).Data())
	}
	if total != h2Window {
		t.Fatalf("got %d octets", total)
	}
	p.framer.WriteWindowUpdate(0, 1<<20)
	if d, ok := p.until().(*http2.DataFrame); !ok || d.StreamID != id-2 || !d.StreamEnded() {
		t.Errorf("got %v", d)
	}
}

// TestH2Unread has a client that asks and takes nothing.
func TestH2Unread(t *testing.T) {
	s := h2Server(t, func(c *Config) {
		most := 10000
		c.Limits.UnreadBytes, c.WriteTimeout = &most, 200*time.Millisecond
	})
	p := rawH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	calm, late := limitedTo(s, "unread_bytes"), limitedTo(s, "write_time")
	codes := map[uint32]http2.ErrCode{}
	for id := uint32(1); id <= 9; id += 2 {
		p.post(id, "long.") // of 3217 octets
	}
	for len(codes) < 5 {
		if f, ok := p.until().(*http2.RSTStreamFrame); ok {
			codes[f.StreamID] = f.ErrCode
		}
	}
	if codes[7] != http2.ErrCodeEnhanceYourCalm || codes[9] != http2.ErrCodeEnhanceYourCalm || codes[1] != http2.ErrCodeCancel || codes[5] != http2.ErrCodeCancel {
		t.Errorf("got %v", codes)
	}
	if limitedTo(s, "unread_bytes") != calm+2 || limitedTo(s, "write_time") != late+3 {
		t.Errorf("counted %d and %d", limitedTo(s, "unread_bytes")-calm, limitedTo(s, "write_time")-late)
	}
	if n := inFlight.n.Load(); n > 1<<16 {
		t.Errorf("%d octets are left in the ledger", n)
	}
}

// TestH2SlowBody has a body that does not come.
func TestH2SlowBody(t *testing.T) {
	s := h2Server(t, func(c *Config) { c.ReadTimeout = 200 * time.Millisecond })
	before := limitedTo(s, "read_time")
	p := rawH2(t, s.addr)
	p.open(1, false, postFields()...)
	p.framer.WriteData(1, false, []byte("x"))
	if f, ok := p.until().(*http2.RSTStreamFrame); !ok || f.ErrCode != http2.ErrCodeCancel || limitedTo(s, "read_time") != before+1 {
		t.Errorf("got %v", f)
	}
	p.post(3, "www.")
	if id, _, m := p.reply(); id != 3 || len(m.Answer) != 1 {
		t.Errorf("got %d %v", id, m)
	}
}

// TestH2Streams opens more streams than there may be, and resets them: what they asked still counts.
func TestH2Streams(t *testing.T) {
	g := newGate(t)
	cfg := blockFor(t, "https", g)
	most := 4
	cfg.Limits.Streams = &most
	s := serving(t, cfg)
	before := limitedTo(s, "streams")
	p := rawH2(t, s.addr)
	id := uint32(1)
	for ; id < 2*4; id += 2 {
		p.post(id, "slow.")
		p.framer.WriteRSTStream(id, http2.ErrCodeCancel)
	}
	for range 20 {
		p.post(id, "slow.")
		if f, ok := p.until().(*http2.RSTStreamFrame); !ok || f.ErrCode != http2.ErrCodeRefusedStream || f.StreamID != id {
			t.Fatalf("stream %d: got %v", id, f)
		}
		id += 2
	}
	if n := limitedTo(s, "streams") - before; n != 20 {
		t.Errorf("counted %d", n)
	}
	g.open()
	eventually(t, "there is room again", func() bool {
		p.post(id, "www.")
		if _, refused := p.until().(*http2.RSTStreamFrame); refused {
			id += 2
			return false
		}
		return true
	})
	p.until() // the body
	p.post(id+2, "www.")
	if got, _, m := p.reply(); got != id+2 || m == nil || len(m.Answer) != 1 {
		t.Errorf("got %d %v", got, m)
	}
}

// TestH2Reset has a client that is not interested any more: the context of its query ends.
func TestH2Reset(t *testing.T) {
	began, cancelled := make(chan struct{}, 1), make(chan error, 1)
	s := serving(t, blockFor(t, "https", handlerUntilCancelled(began, cancelled)))
	p := rawH2(t, s.addr)
	p.post(1, "www.")
	<-began
	p.framer.WriteRSTStream(1, http2.ErrCodeCancel)
	select {
	case <-cancelled:
	case <-time.After(clients.AskTime):
		t.Error("the query goes on")
	}
	p.post(3, "www.")
	<-began
	p.conn.Close()
	select {
	case <-cancelled:
	case <-time.After(clients.AskTime):
		t.Error("the query goes on without its connection")
	}
}

// TestH2GoesAway stops a server in the midst of a client's questions.
func TestH2GoesAway(t *testing.T) {
	h := newGate(t)
	s := serving(t, blockFor(t, "https", h))
	p := rawH2(t, s.addr)
	p.post(1, "slow.")
	h.holds(t, 1)
	go s.base().Stop()
	if g, ok := p.until().(*http2.GoAwayFrame); !ok || g.LastStreamID != h2MaxWindow || g.ErrCode != http2.ErrCodeNo {
		t.Errorf("got %v", g)
	}
	p.post(3, "www.") // was on its way
	if id, _, m := p.reply(); id != 3 || len(m.Answer) != 1 {
		t.Errorf("got %d %v", id, m)
	}
	if g, ok := p.until().(*http2.GoAwayFrame); !ok || g.LastStreamID != 3 || g.ErrCode != http2.ErrCodeNo {
		t.Errorf("got %v", g)
	}
	h.open()
	if id, _, m := p.reply(); id != 1 || len(m.Answer) != 1 {
		t.Errorf("got %d %v", id, m)
	}
	if got := p.ended(); got != "no GOAWAY" {
		t.Errorf("got %s", got)
	}
}
