package http2

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clients"
)

// data reads a DATA frame of stream id with n octets, and reports whether it is the last one.
func data(t *testing.T, p *coretest.H2, id uint32, n int) (ended bool) {
	t.Helper()
	d, ok := p.Until().(*http2.DataFrame)
	if !ok || d.StreamID != id || len(d.Data()) != n {
		t.Fatalf("got %v, want %d octets of stream %d", d, n, id)
	}
	return d.StreamEnded()
}

// readHead reads a HEADERS frame of stream id.
func readHead(t *testing.T, p *coretest.H2, id uint32) {
	t.Helper()
	h, ok := p.Until().(*http2.MetaHeadersFrame)
	if !ok || h.StreamID != id || h.PseudoValue("status") != "200" {
		t.Fatalf("got %v, want the header of stream %d", h, id)
	}
}

// TestWindows has a client that lets answers in by the spoonful.
func TestWindows(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	p.Open(1, true, getting("/50")...)
	readHead(t, p, 1)
	data(t, p, 1, 10)
	p.Framer.WriteWindowUpdate(1, 5)
	data(t, p, 1, 5)
	p.Framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 12}) // two more for each stream
	data(t, p, 1, 2)
	p.Open(3, true, getting("/50")...) // is not held up
	readHead(t, p, 3)
	data(t, p, 3, 12)
	p.Framer.WriteWindowUpdate(1, 1000)
	if !data(t, p, 1, 50-17) {
		t.Error("stream 1 goes on")
	}
	p.Framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 5}) // the window of stream 3 is less than none
	p.Framer.WriteWindowUpdate(3, 8)
	if data(t, p, 3, 1) {
		t.Error("stream 3 has ended")
	}
	p.Framer.WriteWindowUpdate(3, 1<<31-1)
	p.Framer.WriteWindowUpdate(3, 1<<31-1)
	if !data(t, p, 3, 50-13) {
		t.Error("stream 3 goes on")
	}
}

// Settings are taken over in their order, also one that comes twice, and acknowledged before what they let out (RFC 9113
// §6.5.3).
func TestSettingsInOrder(t *testing.T) {
	p := coretest.ConnectH2(t, serve(t, newSite(), nil).addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	p.Open(1, true, getting("/5")...)
	readHead(t, p, 1)
	id := http2.SettingInitialWindowSize
	p.Framer.WriteSettings(http2.Setting{ID: id, Val: 3}, http2.Setting{ID: id, Val: 1})
	if f, ok := p.Read().(*http2.SettingsFrame); !ok || !f.IsAck() {
		t.Fatalf("got %v", f)
	}
	data(t, p, 1, 1)
}

// A stream whose window gets too wide is reset, and its connection goes on; windows of those that are over do not
// matter.
func TestStreamWindowTooWide(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	post(p, 1, "/later", "abc")
	s.waits(1)
	p.Framer.WriteWindowUpdate(1, 1<<31-1)
	if f := p.Until(); !resetWith(f, 1, http2.ErrCodeFlowControl) {
		t.Errorf("got %v", f)
	}
	p.Framer.WriteWindowUpdate(1, 1<<31-1)
	post(p, 3, "/", "abc")
	if got := answered(p); got != "3: abc" {
		t.Errorf("got %s", got)
	}
	post(p, 5, "/later", "abc") // with a window that SETTINGS make too wide
	s.waits(1)
	p.Framer.WriteWindowUpdate(5, 1<<31-11)
	p.Framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 11})
	if g, ok := p.Until().(*http2.GoAwayFrame); !ok || g.LastStreamID != 5 || g.ErrCode != http2.ErrCodeFlowControl {
		t.Errorf("got %v", g)
	}
	// The connection ends at once, without an answer to what was asked.
	if got := p.Ended(); got != "no GOAWAY" {
		t.Errorf("got %s", got)
	}
	close(s.later)
}

// TestConnectionWindow fills the connection's window with answers.
func TestConnectionWindow(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	total, id := 0, uint32(1)
	for ; total < defaultWindow; id += 2 {
		p.Open(id, true, getting("/10000")...)
		readHead(t, p, id)
		total += len(p.Until().(*http2.DataFrame).Data())
	}
	if total != defaultWindow {
		t.Fatalf("got %d octets", total)
	}
	p.Open(id, true, getting("/5")...) // waits behind it
	readHead(t, p, id)
	p.Framer.WriteWindowUpdate(0, 1<<20)
	if !data(t, p, id-2, 70000-defaultWindow) || !data(t, p, id, 5) {
		t.Error("they go on")
	}
}

// Our own window is opened again for what is consumed: a client may send bodies without end.
func TestReceiveWindow(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr)
	widened := uint32(0)
	for id := uint32(1); id < 80; id += 2 {
		p.Open(id, false, posting("/1")...)
		p.Framer.WriteData(id, true, make([]byte, frameSize)) // together more than twice our window
		for answers := 0; answers < 2; {
			switch f := p.Read().(type) {
			case *http2.WindowUpdateFrame:
				widened += f.Increment
			case *http2.MetaHeadersFrame, *http2.DataFrame:
				answers++
			default:
				t.Fatalf("got %v", f)
			}
		}
	}
	if sent := uint32(40 * frameSize); widened > sent || sent-widened >= ackAfter {
		t.Errorf("opened again for %d octets of %d", widened, sent)
	}
}

// Padding is consumed, too.
func TestReceiveWindowOfPadding(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr)
	const padded = 256 // octets of a frame with a body of none: the padding, and its length
	for id := uint32(1); id < 2*(connWindow/padded+100); id += 2 {
		p.Open(id, false, posting("/1")...)
		p.Framer.WriteDataPadded(id, true, nil, make([]byte, padded-1))
		p.Framer.WriteWindowUpdate(0, 1)
		if got := answered(p); got != fmt.Sprintf("%d: x", id) {
			t.Fatalf("got %s", got)
		}
	}
}

// TestUnread has a client that asks and takes nothing.
func TestUnread(t *testing.T) {
	before := unsent.Octets()
	s := serve(t, newSite(), func(s *service.Service) { s.Unread, s.Write = 10000, 200*time.Millisecond })
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	codes := map[uint32]http2.ErrCode{}
	p.Open(1, true, getting("/10001")...) // more than is kept
	for id := uint32(3); id <= 9; id += 2 {
		p.Open(id, true, getting("/3217")...)
	}
	for len(codes) < 5 {
		if f, ok := p.Until().(*http2.RSTStreamFrame); ok {
			codes[f.StreamID] = f.ErrCode
		}
	}
	for id, want := range map[uint32]http2.ErrCode{
		1: http2.ErrCodeEnhanceYourCalm, 3: http2.ErrCodeCancel, 5: http2.ErrCodeCancel, 7: http2.ErrCodeCancel, 9: http2.ErrCodeCancel,
	} {
		if codes[id] != want {
			t.Errorf("stream %d: got %v, want %v", id, codes[id], want)
		}
	}
	calm, late := coretest.Limited(s.Service, "unread_bytes"), coretest.Limited(s.Service, "write_time")
	if calm != 4 || late != 4 {
		t.Errorf("counted %d and %d", calm, late)
	}
	s.end()
	if n := unsent.Octets() - before; n != 0 {
		t.Errorf("%d octets are left in the ledger", n)
	}
}

// TestMoreThanFits has a client that asks for more than is kept for it, and takes it only then: all is answered.
func TestMoreThanFits(t *testing.T) {
	const most, many, size = 200_000, 20, 60_000
	s := serve(t, newSite(), func(s *service.Service) { s.Unread = most })
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	for id := uint32(1); id < 2*many; id += 4 {
		p.Open(id, true, getting(fmt.Sprint("/", size))...)
		post(p, id+2, fmt.Sprint("/", size), "abc")
	}
	p.Framer.WritePing(false, [8]byte{})
	got, statuses := map[uint32]int{}, 0
	for ended := 0; ended < many; {
		switch f := p.Until().(type) {
		case *http2.MetaHeadersFrame:
			if f.PseudoValue("status") == "200" {
				statuses++
			}
		case *http2.PingFrame: // all were read
			p.Framer.WriteWindowUpdate(0, defaultWindow)
		case *http2.DataFrame:
			got[f.StreamID] += len(f.Data())
			p.Framer.WriteWindowUpdate(0, max(1, uint32(len(f.Data()))))
			if f.StreamEnded() {
				ended++
			}
		default:
			t.Fatalf("got %v", f)
		}
	}
	for id := uint32(1); id < 2*many; id += 2 {
		if got[id] != size {
			t.Errorf("stream %d: got %d octets", id, got[id])
		}
	}
	if n := coretest.Limited(s.Service, "unread_bytes"); statuses != many || n == 0 {
		t.Errorf("got %d headers, and counted %d", statuses, n)
	}
}

// What was asked while there was room is answered, also where the replies together are more than is kept for a connection.
func TestMoreComesThanFits(t *testing.T) {
	const many, size = 10, 10_000
	s := serve(t, newSite(), func(s *service.Service) { s.Unread = 2 * size })
	p := coretest.ConnectH2(t, s.addr)
	p.Framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for id := uint32(1); id < 2*many; id += 2 {
		post(p, id, "/later", strings.Repeat("x", size))
	}
	s.waits(many)
	close(s.later)
	for range many {
		if h, ok := p.Until().(*http2.MetaHeadersFrame); !ok || h.PseudoValue("status") != "200" {
			t.Fatalf("got %v", h)
		}
	}
	p.Framer.WriteWindowUpdate(0, many*size)
	p.Framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: size})
	for ended := 0; ended < many; {
		d, ok := p.Until().(*http2.DataFrame)
		if !ok {
			t.Fatalf("got %v", d)
		}
		if d.StreamEnded() {
			ended++
		}
	}
}

// Requests that wait until the client takes replies are answered as long as it takes any, and those that it resets are not.
func TestHeldAsLongAsTaken(t *testing.T) {
	const write = time.Second
	s := serve(t, newSite(), func(s *service.Service) { s.Unread, s.Write = 10, write })
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for id := uint32(1); id <= 7; id += 2 {
		p.Open(id, true, getting("/5")...)
	}
	p.Framer.WriteRSTStream(3, http2.ErrCodeCancel)
	readHead(t, p, 1)
	for i := range 5 {
		time.Sleep(write * 2 / 5) // less than the time for each, and all more than that
		p.Framer.WriteWindowUpdate(1, 1)
		if data(t, p, 1, 1) != (i == 4) {
			t.Errorf("octet %d", i)
		}
	}
	readHead(t, p, 5)
	for range 2 { // nothing more is taken
		if f := p.Until(); !resetWith(f, 5, http2.ErrCodeCancel) && !resetWith(f, 7, http2.ErrCodeCancel) {
			t.Errorf("got %v", f)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) != 2 {
		t.Errorf("%d were answered", len(s.seen))
	}
}

// A window that is widened before the request is answered stays so.
func TestWidenedBefore(t *testing.T) {
	s := serve(t, newSite(), func(s *service.Service) { s.Unread, s.Write = 10, time.Second })
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	p.Open(1, true, getting("/5")...)
	readHead(t, p, 1)
	p.Open(3, true, getting("/5")...) // is held
	p.Framer.WriteWindowUpdate(3, 5)
	p.Framer.WriteWindowUpdate(1, 5)
	data(t, p, 1, 5)
	readHead(t, p, 3)
	if !data(t, p, 3, 5) {
		t.Error("it goes on")
	}
}

// The same between the header and the body, of a request that is answered at once or later.
func TestWidenedBeforeBody(t *testing.T) {
	s := serve(t, newSite(), func(s *service.Service) { s.Write = time.Second })
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for id, path := range []string{1: "/5", 3: "/later"} {
		if path == "" {
			continue
		}
		id := uint32(id)
		p.Open(id, false, posting(path)...)
		p.Framer.WriteWindowUpdate(id, 5)
		p.Framer.WriteData(id, true, []byte("abcde"))
		if id == 3 {
			s.waits(1)
			close(s.later)
		}
		readHead(t, p, id)
		data(t, p, id, 5)
	}
}

// What is held when the server stops is answered as the client takes replies, also where its answer comes later.
func TestDrainOfHeld(t *testing.T) {
	s := serve(t, newSite(), func(s *service.Service) { s.Unread, s.Write = 10, time.Hour })
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	p.Open(1, true, getting("/5")...)
	readHead(t, p, 1)
	post(p, 3, "/later", "abc")
	post(p, 5, "/later", "abc")
	ended := make(chan error)
	go func() { ended <- s.end() }()
	for g, ok := (*http2.GoAwayFrame)(nil), false; !ok || g.LastStreamID != 5; { // nothing more is on its way
		g, ok = p.Until().(*http2.GoAwayFrame)
	}
	p.Framer.WriteWindowUpdate(1, 5)
	data(t, p, 1, 5)
	s.waits(2)
	close(s.later)
	for range 2 {
		h, ok := p.Until().(*http2.MetaHeadersFrame)
		if !ok {
			t.Fatalf("got %v", h)
		}
	}
	for id := uint32(3); id <= 5; id += 2 {
		p.Framer.WriteWindowUpdate(id, 3)
		data(t, p, id, 3)
	}
	if got := p.Ended(); got != "no GOAWAY" {
		t.Errorf("got %s", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What is answered at once has the room that there was when it was asked, also if other replies come meanwhile.
func TestRoomIsTakenMeanwhile(t *testing.T) {
	const size = 10_000
	s := serve(t, newSite(), func(s *service.Service) { s.Unread = 3*size - 1 })
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for id := uint32(1); id <= 5; id += 4 {
		post(p, id, "/later", strings.Repeat("x", size))
	}
	s.waits(2)
	s.site.look = func(v *visit, _ *Request) {
		close(s.later)
		eventually.Holds(t, "two replies that wait", func() bool {
			v.mu.Lock()
			defer v.mu.Unlock()
			return v.waiting == 2*size
		})
	}
	p.Open(7, true, getting(fmt.Sprint("/", size))...)
	for range 3 {
		if h, ok := p.Until().(*http2.MetaHeadersFrame); !ok || h.PseudoValue("status") != "200" {
			t.Fatalf("got %v", h)
		}
	}
	p.Framer.WritePing(false, [8]byte{})
	if f, ok := p.Until().(*http2.PingFrame); !ok {
		t.Errorf("got %v", f)
	}
}

// A client that takes a bit now and then is waited for.
func TestSlowReaderIsWaitedFor(t *testing.T) {
	s := serve(t, newSite(), func(s *service.Service) { s.Write = time.Second })
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	p.Open(1, true, getting("/5")...)
	readHead(t, p, 1)
	began := time.Now()
	for i := range 5 {
		if i > 0 {
			time.Sleep(300 * time.Millisecond) // less than Write, and all more than that
		}
		p.Framer.WriteWindowUpdate(1, 1)
		if data(t, p, 1, 1) != (i == 4) {
			t.Errorf("octet %d", i)
		}
	}
	if !coretest.Since(began, s.Write) || coretest.Limited(s.Service, "write_time") != 0 {
		t.Errorf("after %v, counted %d", time.Since(began), coretest.Limited(s.Service, "write_time"))
	}
}

// When the server stops, a reply is sent to its end that is taken slowly, and one that nobody takes is given up.
func TestDrainOfSlowReader(t *testing.T) {
	s := serve(t, newSite(), func(s *service.Service) { s.Write = time.Hour })
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	p.Open(1, true, getting("/5")...)
	readHead(t, p, 1)
	p.Open(3, true, getting("/5")...)
	readHead(t, p, 3)
	ended := make(chan error)
	go func() { ended <- s.end() }()
	for g, ok := (*http2.GoAwayFrame)(nil), false; !ok || g.LastStreamID != 3; { // nothing more is on its way
		g, ok = p.Until().(*http2.GoAwayFrame)
	}
	p.Open(5, true, getting("/5")...)
	if f := p.Until(); !resetWith(f, 5, http2.ErrCodeRefusedStream) {
		t.Errorf("got %v for a stream behind the last one", f)
	}
	for i := range 5 {
		time.Sleep(3 * service.DrainTime)
		p.Framer.WriteWindowUpdate(1, 1)
		if data(t, p, 1, 1) != (i == 4) {
			t.Errorf("octet %d", i)
		}
	}
	if got := p.Ended(); got != "no GOAWAY" {
		t.Errorf("got %s", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestSlowBody has a body that does not come.
func TestSlowBody(t *testing.T) {
	s := serve(t, newSite(), func(s *service.Service) { s.Read = 200 * time.Millisecond })
	p := coretest.ConnectH2(t, s.addr)
	p.Open(1, false, posting("/")...)
	p.Framer.WriteData(1, false, []byte("x"))
	if f := p.Until(); !resetWith(f, 1, http2.ErrCodeCancel) || coretest.Limited(s.Service, "read_time") != 1 {
		t.Errorf("got %v", f)
	}
	p.Framer.WriteData(1, true, []byte("too late"))
	post(p, 3, "/", "abc")
	if got := answered(p); got != "3: abc" {
		t.Errorf("got %s", got)
	}
}

// TestRapidReset opens more streams than there may be, and resets them: what they asked still counts.
func TestRapidReset(t *testing.T) {
	s := serve(t, newSite(), func(s *service.Service) { s.Streams = 4 })
	p := coretest.ConnectH2(t, s.addr)
	id := uint32(1)
	for ; id < 2*4; id += 2 {
		p.Open(id, true, getting("/stubborn")...)
		p.Framer.WriteRSTStream(id, http2.ErrCodeCancel)
	}
	s.waits(4)
	for ; id < 2*24; id += 2 {
		p.Open(id, true, getting("/later")...)
		if f := p.Until(); !resetWith(f, id, http2.ErrCodeRefusedStream) {
			t.Fatalf("stream %d: got %v", id, f)
		}
	}
	if n := coretest.Limited(s.Service, "streams"); n != 20 {
		t.Errorf("counted %d", n)
	}
	close(s.later)
	eventually.Holds(t, "there is room again", func() bool {
		p.Open(id, true, getting("/1")...)
		id += 2
		_, refused := p.Until().(*http2.RSTStreamFrame)
		if !refused {
			p.Until() // the body
		}
		return !refused
	})
}

// Bodies that do not end take places, too.
func TestOpenBodiesCount(t *testing.T) {
	s := serve(t, newSite(), func(s *service.Service) { s.Streams = 2 })
	p := coretest.ConnectH2(t, s.addr)
	p.Open(1, false, posting("/")...)
	p.Open(3, false, posting("/")...)
	p.Open(5, true, getting("/1")...)
	if f := p.Until(); !resetWith(f, 5, http2.ErrCodeRefusedStream) {
		t.Errorf("got %v", f)
	}
	p.Framer.WriteRSTStream(3, http2.ErrCodeCancel)
	p.Open(7, true, getting("/1")...)
	if got := answered(p); got != "7: x" {
		t.Errorf("got %s", got)
	}
}

// The context of a request that waits ends when nobody wants its answer any more: the stream is reset, or the client
// goes.
func TestContextEnds(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr)
	gone := func(what string) {
		t.Helper()
		select {
		case <-s.ended:
		case <-time.After(clients.AskTime):
			t.Errorf("it goes on %s", what)
		}
	}
	p.Open(1, true, getting("/later")...)
	s.waits(1)
	p.Framer.WriteRSTStream(1, http2.ErrCodeCancel)
	gone("though its stream was reset")
	p.Open(3, true, getting("/later")...)
	s.waits(1)
	p.Conn.Close()
	gone("without its connection")
}

// Nobody hears of an answer whose stream was reset.
func TestAnswerOfNobody(t *testing.T) {
	of := newSite()
	s := serve(t, of, nil)
	p := coretest.ConnectH2(t, s.addr)
	of.look = func(v *visit, r *Request) {
		if r.ID == 1 {
			v.Reply(99, Response{Status: 200, Body: []byte("nobody's")}, false)
		}
	}
	p.Open(1, true, getting("/5")...)
	if got := answered(p); got != "1: "+strings.Repeat("x", 5) {
		t.Errorf("got %s", got)
	}
}
