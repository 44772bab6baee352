package doh

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/http2"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clients"
)

// post asks for a name.
func post(p *coretest.H2, id uint32, name string) {
	p.Post(id, coretest.Packed(p, coretest.Query(name)))
}

// replied reads a response, and describes its reply.
func replied(p *coretest.H2) (id uint32, got string) {
	p.Helper()
	id, status, body := p.Reply()
	m := new(dns.Msg)
	if status != "200" || m.Unpack(body) != nil {
		return id, "status " + status
	}
	return id, coretest.Describe(m)
}

// A query that waits does not hold up others of its connection, whatever it waits for.
func TestH2AnswersOutOfOrder(t *testing.T) {
	h := &coretest.Lane{Held: make(chan struct{})}
	s := serve(t, serviceFor(t, h), tlsConfig(t))
	p := coretest.ConnectH2(t, s.addr)
	post(p, 1, "hold.")
	post(p, 3, "www.")
	if id, got := replied(p); id != 3 || got != "NOERROR 192.0.2.1" {
		t.Errorf("got %d %s", id, got)
	}
	close(h.Held)
	if id, got := replied(p); id != 1 || got != "NOERROR 192.0.2.2" {
		t.Errorf("got %d %s", id, got)
	}
	for i, tc := range []struct{ name, want string }{
		{"unpack.", "NOERROR 192.0.2.3"},
		{"block.", "NOERROR 192.0.2.2"},
		{"parkunpack.", "NOERROR 192.0.2.3"},
		{"parksame.", "NOERROR 192.0.2.3"},
		{"drop.", "status 500"},
		{"panic.", "SERVFAIL"},
	} {
		post(p, uint32(5+2*i), tc.name)
		if _, got := replied(p); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

// A message lane's query that nobody answers is answered all the same, and one whose request no validator would read,
// refused.
func TestH2NobodyAnswers(t *testing.T) {
	of := serviceFor(t, coretest.Handler(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return 0, nil }))
	s := serve(t, of, tlsConfig(t))
	p := coretest.ConnectH2(t, s.addr)
	post(p, 1, "www.")
	if _, got := replied(p); got != "status 500" {
		t.Errorf("got %s", got)
	}
	settings(of).Valid = func(r *http.Request) bool { return r.URL.Path != "/dns-query" }
	p.Open(3, true, ":method", "GET", ":scheme", "https", ":authority", "a", ":path", "::no target")
	if _, got := replied(p); got != "status 404" {
		t.Errorf("got %s", got)
	}
}

// A path is the same however it is written.
func TestH2EscapedPath(t *testing.T) {
	s := serve(t, serviceFor(t, new(coretest.Lane)), tlsConfig(t))
	p := coretest.ConnectH2(t, s.addr)
	for i, tc := range []struct{ path, want string }{{"/dns%2Dquery", "status 400"}, {"/%64ns-query", "status 400"}, {"/dns-query%2F", "status 404"}, {"/dns%", "status 404"}} {
		p.Open(uint32(1+2*i), true, ":method", "GET", ":scheme", "https", ":authority", "a", ":path", tc.path)
		if _, got := replied(p); got != tc.want { // without a query it is a bad request
			t.Errorf("%s: %s, want %s", tc.path, got, tc.want)
		}
	}
}

// A handler that ends its goroutine leaves a response, too; and to HEAD there is a header only.
func TestH2OddEnds(t *testing.T) {
	s := serve(t, serviceFor(t, coretest.Handler(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
		runtime.Goexit()
		return 0, nil
	})), tlsConfig(t))
	p := coretest.ConnectH2(t, s.addr)
	post(p, 1, "www.")
	if _, got := replied(p); got != "status 500" {
		t.Errorf("got %s", got)
	}
	p.Open(3, true, ":method", "HEAD", ":scheme", "https", ":authority", "a", ":path", "/dns-query")
	h, ok := p.Until().(*http2.MetaHeadersFrame)
	if !ok || h.StreamID != 3 || !h.StreamEnded() || h.PseudoValue("status") != "400" {
		t.Errorf("got %v", h)
	}
}

// TestH2Streams opens more streams than there may be, and resets them: what they asked still counts.
func TestH2Streams(t *testing.T) {
	g := coretest.NewGate(t)
	of := serviceFor(t, g)
	of.Streams = 4
	s := serve(t, of, tlsConfig(t))
	p := coretest.ConnectH2(t, s.addr)
	id := uint32(1)
	for ; id < 2*4; id += 2 {
		post(p, id, "slow.")
		p.Framer.WriteRSTStream(id, http2.ErrCodeCancel)
	}
	for range 20 {
		post(p, id, "slow.")
		f, ok := p.Until().(*http2.RSTStreamFrame)
		if !ok || f.ErrCode != http2.ErrCodeRefusedStream || f.StreamID != id {
			t.Fatalf("stream %d: got %v", id, f)
		}
		id += 2
	}
	if n := coretest.Limited(of, "streams"); n != 20 {
		t.Errorf("counted %d", n)
	}
	g.Open()
	eventually.Holds(t, "there is room again", func() bool {
		post(p, id, "www.")
		if _, refused := p.Until().(*http2.RSTStreamFrame); refused {
			id += 2
			return false
		}
		return true
	})
	p.Until() // the body
	post(p, id+2, "www.")
	if got, r := replied(p); got != id+2 || r != "NOERROR 192.0.2.1" {
		t.Errorf("got %d %s", got, r)
	}
}

// TestH2Reset has a client that is not interested any more: the context of its query ends.
func TestH2Reset(t *testing.T) {
	began, cancelled := make(chan struct{}, 1), make(chan error, 1)
	s := serve(t, serviceFor(t, coretest.UntilCancelled(began, cancelled)), tlsConfig(t))
	p := coretest.ConnectH2(t, s.addr)
	gone := func(what string) {
		t.Helper()
		select {
		case <-cancelled:
		case <-time.After(clients.AskTime):
			t.Errorf("the query goes on %s", what)
		}
	}
	post(p, 1, "www.")
	<-began
	p.Framer.WriteRSTStream(1, http2.ErrCodeCancel)
	gone("though its stream was reset")
	post(p, 3, "www.")
	<-began
	p.Conn.Close()
	gone("without its connection")
}

// TestH2GoesAway stops a server in the midst of a client's questions.
func TestH2GoesAway(t *testing.T) {
	g := coretest.NewGate(t)
	s := serve(t, serviceFor(t, g), tlsConfig(t))
	p := coretest.ConnectH2(t, s.addr)
	post(p, 1, "slow.")
	g.Holds(t, 1)
	go s.end()
	if g, ok := p.Until().(*http2.GoAwayFrame); !ok || g.LastStreamID != 1<<31-1 || g.ErrCode != http2.ErrCodeNo {
		t.Errorf("got %v", g)
	}
	post(p, 3, "www.") // was on its way
	if id, got := replied(p); id != 3 || got != "NOERROR 192.0.2.1" {
		t.Errorf("got %d %s", id, got)
	}
	if g, ok := p.Until().(*http2.GoAwayFrame); !ok || g.LastStreamID != 3 || g.ErrCode != http2.ErrCodeNo {
		t.Errorf("got %v", g)
	}
	g.Open()
	if id, got := replied(p); id != 1 || got != "NOERROR 192.0.2.1" {
		t.Errorf("got %d %s", id, got)
	}
	if got := p.Ended(); got != "no GOAWAY" {
		t.Errorf("got %s", got)
	}
}

// A client whose server ends gets the replies to what was parked. The last reply of a connection is written by
// another goroutine than the one that closes it, so this is tried often.
func TestH2LastReplies(t *testing.T) {
	const rounds = 30
	h := &coretest.Lane{Held: make(chan struct{})}
	s := serve(t, serviceFor(t, h), tlsConfig(t))
	var peers []*coretest.H2
	for range rounds {
		p := coretest.ConnectH2(t, s.addr)
		post(p, 1, "hold.")
		peers = append(peers, p)
	}
	eventually.Holds(t, "all are parked", func() bool { return h.Holding.Load() == rounds })
	go s.end()
	for _, p := range peers { // one now, one when its queries are the last
		for range 2 {
			if g, ok := p.Until().(*http2.GoAwayFrame); !ok || g.ErrCode != http2.ErrCodeNo {
				t.Fatalf("got %v", g)
			}
		}
	}
	close(h.Held)
	for i, p := range peers {
		if _, got := replied(p); got != "NOERROR 192.0.2.2" {
			t.Errorf("%d: got %s", i, got)
		}
	}
}

// A reply longer than the client lets in waits for it, and the queries behind it, too.
func TestH2Unread(t *testing.T) {
	of := serviceFor(t, new(coretest.Lane))
	of.Unread, of.Write = 10000, 200*time.Millisecond
	s := serve(t, of, tlsConfig(t))
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	codes := map[uint32]http2.ErrCode{}
	for id := uint32(1); id <= 9; id += 2 {
		post(p, id, "long.") // of 3217 octets
	}
	for len(codes) < 5 {
		if f, ok := p.Until().(*http2.RSTStreamFrame); ok {
			codes[f.StreamID] = f.ErrCode
		}
	}
	for id, code := range codes {
		if code != http2.ErrCodeCancel {
			t.Errorf("stream %d: got %v", id, code)
		}
	}
	if coretest.Limited(of, "unread_bytes") != 4 || coretest.Limited(of, "write_time") != 5 {
		t.Errorf("counted %d and %d", coretest.Limited(of, "unread_bytes"), coretest.Limited(of, "write_time"))
	}
}

// A connection of HTTP/1.1 that is about to stop tells its client so.
func TestHTTP1Stopping(t *testing.T) {
	g := coretest.NewGate(t)
	s := serve(t, serviceFor(t, g), tlsConfig(t))
	closing := make(chan struct{})
	s.http1.server.RegisterOnShutdown(func() { close(closing) })
	c := clients.DialHTTP(t, s.addr, "", 1)
	got := make(chan error, 1)
	go func() {
		resp, err := c.Client.Get(c.URL + inURL(coretest.Packed(t, coretest.Query("slow."))))
		if err == nil {
			if !resp.Close {
				err = errors.New("the client does not know that the connection ends")
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		got <- err
	}()
	g.Holds(t, 1)
	ended := coretest.Stopping(t, s.end)
	<-closing
	g.Open()
	ended()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
