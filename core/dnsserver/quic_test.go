//go:build !noquic && !nohttps3

package dnsserver

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

// Connections that are too many are refused with the code of their protocol; Config says how many there may be.
func TestQUICConnections(t *testing.T) {
	for scheme, code := range map[string]quic.ApplicationErrorCode{"quic": 4, "https3": 0x107} {
		g := newGate(t)
		cfg := blockFor(t, scheme, g)
		one := 1
		cfg.MaxQUICConnections, cfg.MaxHTTPS3Connections = &one, &one
		s := serving(t, cfg)
		busy := make(chan error, 1)
		c := clients.Connect(t, scheme, s.addr)
		go func() {
			_, err := c.Ask(query("slow."))
			busy <- err
		}()
		g.holds(t, 1)
		conf := clients.Trusting.Clone()
		conf.NextProtos = []string{map[string]string{"quic": "doq", "https3": "h3"}[scheme]}
		refused, err := quic.DialAddr(t.Context(), s.addr, conf, nil)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-refused.Context().Done():
		case <-time.After(clients.AskTime):
			t.Fatalf("%s: one too many", scheme)
		}
		var app *quic.ApplicationError
		if err := context.Cause(refused.Context()); !errors.As(err, &app) || app.ErrorCode != code {
			t.Errorf("%s: refused with %v, want code %d", scheme, err, code)
		}
		g.open()
		if err := <-busy; err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// TestQUICStops has servers stop while queries are at work.
func TestQUICStops(t *testing.T) {
	for _, scheme := range []string{"quic", "https3"} {
		g := newGate(t)
		s := serving(t, blockFor(t, scheme, g))
		c := clients.Connect(t, scheme, s.addr)
		if _, err := c.Ask(query("www.")); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, err := c.Ask(query("slow."))
			done <- err
		}()
		g.holds(t, 1)
		ended := stopping(t, s.base())
		g.open()
		ended()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
		s.wait()
	}
}

// As many queries are served at one time as Config says.
func TestDoQWorkers(t *testing.T) {
	var now, most atomic.Int32
	cfg := blockFor(t, "quic", handler{"counting", func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		time.Sleep(10 * time.Millisecond)
		return echo.serve(ctx, w, r)
	}})
	one := 1
	cfg.MaxQUICWorkerPoolSize = &one
	s := serving(t, cfg)
	var wg sync.WaitGroup
	for range 3 {
		c := clients.DialQUIC(t, s.addr)
		wg.Go(func() {
			if _, err := c.Ask(query("www.")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d queries at one time", n)
	}
}

// Two servers of one socket, as where a reload cannot go on with connections: the clients of the first connect again.
func TestQUICServersOfOneSocket(t *testing.T) {
	q := twoOfOneSocket(t)
	q.begin(q.second, q.handed)
	eventually.Holds(t, "the second one serves", q.secondServes)
	if err := q.first.Stop(); err != nil {
		t.Error(err)
	}
	q.ended()
}

// A server that has its socket from another process reads nothing of that one's connections: it waits for its end.
func TestQUICServersOfTwoProcesses(t *testing.T) {
	q := twoOfOneSocket(t)
	gone := q.handOver()
	began := time.Now()
	q.begin(q.second, q.handed)
	for range 20 {
		if _, err := q.client.Ask(query("www.")); err != nil {
			t.Error(err)
		}
	}
	if q.secondServes() && time.Since(began) < letGoTime {
		t.Error("both read the socket")
	}
	if err := q.first.Stop(); err != nil {
		t.Error(err)
	}
	close(gone)
	q.ended()
}

// A server that is stopped while it waits for another process waits on: a third one, to which the socket is handed over,
// takes its end for that of both.
func TestQUICServersOfThreeProcesses(t *testing.T) {
	q := twoOfOneSocket(t)
	gone := q.handOver()
	q.begin(q.second, q.handed)
	eventually.Holds(t, "the second one waits", q.secondWaits)
	began, stopped := time.Now(), make(chan error)
	go func() { stopped <- q.second.Stop() }()
	select {
	case err := <-stopped:
		if time.Since(began) < letGoTime {
			t.Errorf("the second one ends before the first: %v", err)
		}
	case <-time.After(letGoTime / 10): // it has the chance to go wrong
		close(gone)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}
	if err := q.first.Stop(); err != nil {
		t.Error(err)
	}
	q.wg.Wait()
}

// sameSocket is two servers of one socket, the first of which serves, and a client of it.
type sameSocket struct {
	t             *testing.T
	first, second *ServerQUIC
	handed        net.PacketConn // the second one's
	client        *clients.QUICClient
	wg            sync.WaitGroup
}

func twoOfOneSocket(t *testing.T) *sameSocket {
	t.Helper()
	made := func() *ServerQUIC {
		t.Helper()
		s, err := NewServerQUIC("quic://127.0.0.1:0", []*Config{blockFor(t, "quic", new(laneHandler))})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	q := &sameSocket{t: t, first: made(), second: made()}
	p, err := q.first.ListenPacket()
	if err != nil {
		t.Fatal(err)
	}
	file, err := p.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	q.handed, err = net.FilePacketConn(file)
	file.Close()
	if err != nil {
		t.Fatal(err)
	}
	q.begin(q.first, p)
	q.client = clients.DialQUIC(t, q.handed.LocalAddr().String())
	if _, err := q.client.Ask(query("www.")); err != nil {
		t.Fatal(err)
	}
	return q
}

func (q *sameSocket) begin(s *ServerQUIC, p net.PacketConn) { q.wg.Go(func() { s.ServePacket(p) }) }

// handOver makes the second server one of a process to which the first one's has handed over its socket. The channel is
// to be closed when that has ended.
func (q *sameSocket) handOver() (gone chan struct{}) {
	gone = make(chan struct{})
	g := &generation{giver: gone, unopened: 1, unsettled: 1, servers: []*Server{q.second.Server}}
	for _, c := range []*chan struct{}{&g.opened, &g.settled, &g.drained, &g.late} {
		*c = make(chan struct{})
	}
	q.second.generation = g
	return gone
}

func (q *sameSocket) secondWaits() bool {
	g := q.second.generation
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unopened == 0 && g.unsettled == 1
}

func (q *sameSocket) secondServes() bool {
	q.second.mu.Lock()
	defer q.second.mu.Unlock()
	return len(q.second.running) == 1
}

// ended asserts that the client knows of the end of the first server, and that the second one answers.
func (q *sameSocket) ended() {
	select {
	case <-q.client.Conn.Context().Done():
	case <-time.After(clients.AskTime):
		q.t.Error("the client does not know")
	}
	if _, err := clients.DialQUIC(q.t, q.handed.LocalAddr().String()).Ask(query("www.")); err != nil {
		q.t.Error(err)
	}
	q.second.Stop()
	q.wg.Wait()
}

func TestQUICWithoutTLS(t *testing.T) {
	cfg := blockFor(t, "quic", new(laneHandler))
	cfg.TLSConfig = nil
	s, err := NewServerQUIC("quic://127.0.0.1:0", []*Config{cfg})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ListenPacket(); err == nil || err.Error() != "quic: tls.Config not set" {
		t.Errorf("got %v", err)
	}
	if err := s.ServePacket(nil); err == nil {
		t.Error("serves")
	}
	if err := s.ServeQUIC(); err == nil {
		t.Error("serves without a listener")
	}
	if _, err := NewServerHTTPS3("https3://127.0.0.1:0", []*Config{cfg}); err == nil || err.Error() != "DoH3 requires TLS, no TLS config found" {
		t.Errorf("got %v", err)
	}
}

func TestAddPrefix(t *testing.T) {
	if got := AddPrefix([]byte("abc")); !bytes.Equal(got, []byte("\x00\x03abc")) {
		t.Errorf("got %q", got)
	}
}
