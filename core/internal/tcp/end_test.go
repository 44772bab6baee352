package tcp

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/test/clients"
)

// Handlers see the session of TLS, and none without TLS.
func TestConnectionState(t *testing.T) {
	for how, config := range encryptions(t) {
		seen := make(chan *tls.ConnectionState, 1)
		s := serve(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			c, ok := w.(dns.ConnectionStater)
			if !ok {
				t.Errorf("%T tells no state", w)
			}
			seen <- c.ConnectionState()
			return coretest.Echo(ctx, w, r)
		}), config, nil)
		if _, err := connect(t, s, config).Ask(coretest.Query("www.")); err != nil {
			t.Fatal(err)
		}
		if state := <-seen; (state != nil) != (config != nil) || state != nil && !state.HandshakeComplete {
			t.Errorf("%s: got %v", how, state)
		}
	}
}

// A handler may close the connection, or take it: then no more is read.
func TestHandlerEndsTheConnection(t *testing.T) {
	for name, end := range map[string]func(w dns.ResponseWriter){
		"Close":  func(w dns.ResponseWriter) { w.Close() },
		"Hijack": func(w dns.ResponseWriter) { w.Hijack(); w.Close() },
	} {
		s := serve(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			coretest.Echo(ctx, w, r)
			end(w)
			return 0, nil
		}), nil, nil)
		c := coretest.Dial(t, s.addr)
		c.Write(coretest.Frame(t, "www."))
		if _, err := clients.ReadFrame(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		coretest.ClosedAfter(t, c, time.Now(), 0)
	}
}

// Of a connection that a handler has taken no more queries are read: but for one that is on its way to a worker.
func TestHijackedIsLeftAlone(t *testing.T) {
	var calls atomic.Int32
	s := serve(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		calls.Add(1)
		w.Hijack()
		return coretest.Echo(ctx, w, r)
	}), nil, func(s *service.Service) { s.Pipeline = 1 })
	c := coretest.Dial(t, s.addr)
	c.Write([]byte(strings.Repeat(string(coretest.Frame(t, "www.")), 4)))
	if _, err := clients.ReadFrame(c); err != nil {
		t.Fatal(err)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if n := calls.Load(); n > 2 {
		t.Errorf("%d queries were served", n)
	}
}

// A client that has closed its side gets the replies to what was parked. The last reply of a connection is written by
// another goroutine than the one that closes it, so this is tried often.
func TestLastReplies(t *testing.T) {
	const rounds = 30
	h := &coretest.Lane{Held: make(chan struct{})}
	s := serve(t, h, nil, nil)
	var conns []net.Conn
	for range rounds {
		c := coretest.Dial(t, s.addr)
		c.Write(coretest.Frame(t, "hold."))
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	eventually.Holds(t, "all are parked", func() bool { return h.Holding.Load() == rounds })
	close(h.Held)
	for i, c := range conns {
		b, err := clients.ReadFrame(c)
		if m := new(dns.Msg); err != nil || m.Unpack(b) != nil || coretest.Describe(m) != "NOERROR 192.0.2.2" {
			t.Errorf("%d: %v, %v", i, m, err)
		}
	}
}

// A listener that stops answers what has come, also what is parked; each client's connection ends with that.
func TestStop(t *testing.T) {
	for how, config := range encryptions(t) {
		h := &coretest.Lane{Held: make(chan struct{})}
		s := serve(t, h, config, nil)
		c := connect(t, s, config)
		if _, err := c.Ask(coretest.Query("www.")); err != nil {
			t.Fatal(err)
		}
		done := make(chan string)
		go func() {
			r, err := c.Ask(coretest.Query("hold."))
			if err != nil {
				t.Error(err)
			}
			done <- coretest.Describe(r)
		}()
		eventually.Holds(t, "it is parked", func() bool { return h.Holding.Load() == 1 })
		ended := coretest.Stopping(t, s.end)
		close(h.Held)
		if got := <-done; got != "NOERROR 192.0.2.2" {
			t.Errorf("%s: got %s", how, got)
		}
		ended()
		eventually.Holds(t, "the connection ends", c.Closed)
	}
}

// lostClient is a Lane that goes on with the first query of "long" when a test says that the client is gone.
type lostClient struct {
	*coretest.Lane
	began, gone chan struct{}
	runs        atomic.Int64
}

func (h *lostClient) WireSelf() plugin.Handler { return h }

func (h *lostClient) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if string(wire.FirstLabel(q.Lower())) == "long" {
		if h.runs.Add(1) == 1 {
			close(h.began)
			<-h.gone
		} else {
			time.Sleep(time.Millisecond) // in which replies are written
		}
	}
	return h.Lane.ServeWire(ctx, w, q)
}

// Queries that were read of a client who has gone are not answered: nobody gets the replies.
func TestClientIsGone(t *testing.T) {
	h := &lostClient{Lane: new(coretest.Lane), began: make(chan struct{}), gone: make(chan struct{})}
	s := serve(t, h, nil, nil)
	c := coretest.Dial(t, s.addr)
	const n = 100 // fewer than are read at one time
	c.Write(append(coretest.Frame(t, "unpack."), strings.Repeat(string(coretest.Frame(t, "long.")), n)...))
	if _, err := clients.ReadFrame(c); err != nil { // the connection has a goroutine of its own
		t.Fatal(err)
	}
	<-h.began
	c.(*net.TCPConn).SetLinger(0) // the connection is reset, and the server's socket knows at once
	c.Close()
	close(h.gone)
	time.Sleep(4 * n * time.Millisecond) // in which all would be answered, most likely
	if got := h.runs.Load(); got >= n/2 {
		t.Errorf("%d of %d queries are answered for nobody", got, n)
	}
}
