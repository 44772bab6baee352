package grpc

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// An upstream that is away is tried again and again, not ever more seldom: it may be back at any time.
func TestAwayUpstreamIsTriedOften(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tries := make(chan struct{}, 100)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
			tries <- struct{}{}
		}
	})
	t.Cleanup(func() { l.Close(); running.Wait() })
	g := asking(t, l.Addr().String())
	if _, _, err := ask(g, "www.example.org."); err == nil {
		t.Fatal("who closes connections has answered")
	}
	for end, n := time.After(10*time.Second), 0; n < 6; n++ {
		select {
		case <-tries:
		case <-end:
			t.Fatalf("only %d tries in 10s", n)
		}
	}
}

// A connection that nothing passes any more, though it stays open, is given up, and with it no upstream.
func TestDeadConnectionIsLeft(t *testing.T) {
	defer func(d time.Duration) { alive.Timeout = d }(alive.Timeout)
	alive.Timeout = time.Second
	s := &service{answer: says(0, "www.example.org. 60 IN A 192.0.2.1")}
	to := serve(t, "tcp", "127.0.0.1:0", s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var opened atomic.Int64
	var mu sync.Mutex
	var conns []net.Conn
	pass := func(to, from net.Conn, deaf *atomic.Bool) {
		b := make([]byte, 4096)
		for {
			n, err := from.Read(b)
			if err != nil {
				to.Close()
				return
			}
			if !deaf.Load() {
				to.Write(b[:n])
			}
		}
	}
	var first, others atomic.Bool // are deaf
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				return
			}
			mu.Lock()
			conns = append(conns, c, up)
			mu.Unlock()
			deaf := &others
			if opened.Add(1) == 1 {
				deaf = &first
			}
			running.Go(func() { pass(up, c, deaf) })
			running.Go(func() { pass(c, up, deaf) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	g := asking(t, l.Addr().String())
	if _, _, err := ask(g, "www.example.org."); err != nil {
		t.Fatal(err)
	}
	first.Store(true)
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); {
		if _, _, err := ask(g, "www.example.org."); err == nil {
			return
		}
	}
	t.Error("queries wait for a connection that is dead")
}

// Where too many queries wait, one that an upstream is silent about gives way.
func TestGivesWay(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	silent := func(r *dns.Msg) (*dns.Msg, error) { <-release; return r.SetReply(r), nil }
	addr := serve(t, "tcp", "127.0.0.1:0", &service{answer: silent})
	for _, g := range []*GRPC{asking(t, addr), asking(t, addr, addr)} {
		gone := make(chan error, 1)
		go func() {
			ctx := context.WithValue(context.Background(), eventloop.PlaceKey{}, eventloop.AtWork)
			_, err := g.ServeDNS(ctx, &test.ResponseWriter{}, new(dns.Msg).SetQuestion("a.example.org.", dns.TypeA))
			gone <- err
		}()
		eventually.Holds(t, "one that gives way", func() bool { return eventloop.MakeRoom(eventloop.AtWork) })
		if err := <-gone; err != eventloop.ErrGaveWay {
			t.Error(err)
		}
	}
}
