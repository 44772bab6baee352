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
	"google.golang.org/grpc/connectivity"
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

// deafRelay passes on what comes to a server, until its first connection is deaf: then nothing passes it, though it
// stays open.
type deafRelay struct {
	net.Listener
	to      string
	first   atomic.Bool // is deaf
	left    atomic.Bool // the first one, by the client
	opened  atomic.Int64
	refuses atomic.Int64 // so many connections before
	running sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func newDeafRelay(t *testing.T, to string) *deafRelay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &deafRelay{Listener: l, to: to}
	r.running.Go(r.accept)
	t.Cleanup(func() {
		l.Close()
		r.mu.Lock()
		for _, c := range r.conns {
			c.Close()
		}
		r.mu.Unlock()
		r.running.Wait()
	})
	return r
}

func (r *deafRelay) accept() {
	for {
		c, err := r.Accept()
		if err != nil {
			return
		}
		if r.refuses.Add(-1) >= 0 {
			c.Close()
			continue
		}
		up, err := net.Dial("tcp", r.to)
		if err != nil {
			c.Close()
			return
		}
		r.mu.Lock()
		r.conns = append(r.conns, c, up)
		r.mu.Unlock()
		deaf := new(atomic.Bool)
		if r.opened.Add(1) == 1 {
			deaf = &r.first
		}
		r.running.Go(func() {
			r.pass(up, c, deaf)
			if deaf == &r.first {
				r.left.Store(true)
			}
		})
		r.running.Go(func() { r.pass(c, up, deaf) })
	}
}

func (r *deafRelay) pass(to, from net.Conn, deaf *atomic.Bool) {
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

// hold has a query under way, to which no answer comes, until release, or the end of the test.
func hold(t *testing.T, g *GRPC) (release func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var held sync.WaitGroup
	held.Go(func() { g.ask(ctx, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)) })
	release = func() {
		cancel()
		held.Wait()
	}
	t.Cleanup(release)
	return release
}

// A connection that nothing passes any more, though it stays open, is given up, and with it no upstream.
func TestDeadConnectionIsLeft(t *testing.T) {
	s := &service{answer: says(0, "www.example.org. 60 IN A 192.0.2.1")}
	r := newDeafRelay(t, serve(t, "tcp", "127.0.0.1:0", s))
	g := asking(t, r.Addr().String())
	if _, _, err := ask(g, "www.example.org."); err != nil {
		t.Fatal(err)
	}
	r.first.Store(true)
	release := hold(t, g)
	l := &g.proxies[0].links
	eventually.Holds(t, "silence", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.live[0].users > 0 && l.live[0].silence.Longer(l.usual.Patience(), int64(time.Since(epoch)))
	})
	for range 10 {
		if _, _, err := ask(g, "www.example.org."); err != nil {
			t.Fatal("queries wait for a connection that is dead:", err)
		}
	}
	if n := r.opened.Load(); n < 2 {
		t.Errorf("%d connections", n)
	}
	release()
	if _, _, err := ask(g, "www.example.org."); err != nil {
		t.Error(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.live) != 1 {
		t.Error("the dead connection is kept")
	}
}

// What was asked on a connection that is lost is asked once more: the upstream may have been started anew, or the system
// has found out that nothing comes through.
func TestLostConnection(t *testing.T) {
	r := newDeafRelay(t, serve(t, "tcp", "127.0.0.1:0", &service{answer: says(0, "www.example.org. 60 IN A 192.0.2.1")}))
	g := asking(t, r.Addr().String())
	if _, _, err := ask(g, "www.example.org."); err != nil {
		t.Fatal(err)
	}
	r.first.Store(true)
	over := make(chan error, 1)
	go func() {
		_, _, err := ask(g, "www.example.org.")
		over <- err
	}()
	l := &g.proxies[0].links
	eventually.Holds(t, "silence", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.live[0].users > 0 && l.live[0].silence.Longer(l.usual.Patience(), int64(time.Since(epoch)))
	})
	r.mu.Lock()
	r.conns[0].Close()
	r.mu.Unlock()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// An upstream that is slow gets a second connection, and no third.
func TestSlowUpstreamGetsFewConnections(t *testing.T) {
	release := make(chan struct{})
	s := &service{answer: func(r *dns.Msg) (*dns.Msg, error) {
		<-release
		return new(dns.Msg).SetReply(r), nil
	}}
	r := newDeafRelay(t, serve(t, "tcp", "127.0.0.1:0", s))
	g := asking(t, r.Addr().String())
	l := &g.proxies[0].links
	var held sync.WaitGroup
	for asked := 1; asked <= 4; asked++ {
		held.Go(func() { g.ask(t.Context(), new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)) })
		eventually.Holds(t, "all are asked, and there is silence on all connections", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			users := 0
			for _, k := range l.live {
				if !k.silence.Longer(l.usual.Patience(), int64(time.Since(epoch))) {
					return false
				}
				users += k.users
			}
			return users == asked
		})
	}
	close(release)
	held.Wait()
	if n := r.opened.Load(); n != maxLinks {
		t.Errorf("%d connections", n)
	}
	// When all is well again, one is enough.
	l.mu.Lock()
	for _, k := range l.live {
		k.used -= 2 * unusedTime
	}
	l.mu.Unlock()
	if _, _, err := ask(g, "www.example.org."); err != nil || len(l.live) != 1 {
		t.Errorf("%d connections are kept, %v", len(l.live), err)
	}
}

// Where no second connection can be opened, as an upstream allows a single one, queries go on over the first one, though
// that is silent: the upstream may only be slow.
func TestSecondConnectionIsRefused(t *testing.T) {
	const queries = 4
	release := make(chan struct{})
	var asked atomic.Int64
	s := &service{answer: func(r *dns.Msg) (*dns.Msg, error) {
		asked.Add(1)
		<-release
		return new(dns.Msg).SetReply(r), nil
	}}
	r := newDeafRelay(t, serve(t, "tcp", "127.0.0.1:0", s))
	g := asking(t, r.Addr().String())
	l := &g.proxies[0].links
	ended := make(chan error, queries)
	for i := range int64(queries) {
		go func() {
			_, _, err := ask(g, "www.example.org.")
			ended <- err
		}()
		eventually.Holds(t, "one more query, or its end", func() bool { return asked.Load() > i || len(ended) > 0 })
		if i == 0 {
			r.refuses.Store(1000)
			eventually.Holds(t, "silence", func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.live[0].silence.Longer(l.usual.Patience(), int64(time.Since(epoch)))
			})
		}
	}
	close(release)
	for range queries {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A connection that does not come about is not waited for by those who come a second later.
func TestConnectionThatDoesNotComeAbout(t *testing.T) {
	s := &service{answer: says(0, "www.example.org. 60 IN A 192.0.2.1")}
	r := newDeafRelay(t, serve(t, "tcp", "127.0.0.1:0", s))
	r.first.Store(true)
	g := asking(t, r.Addr().String())
	hold(t, g)
	l := &g.proxies[0].links
	eventually.Holds(t, "a connection that takes long", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		_, dead := l.live[0].silent(connectivity.Connecting, l.usual.Patience(), time.Since(epoch))
		return dead
	})
	if _, _, err := ask(g, "www.example.org."); err != nil || r.opened.Load() != 2 {
		t.Errorf("%d connections, %v", r.opened.Load(), err)
	}
}

// An upstream that was away is reached as soon as it is back, though the connection that is tried meanwhile does not come
// about.
func TestAwayUpstreamIsTriedAnotherWay(t *testing.T) {
	r := newDeafRelay(t, serve(t, "tcp", "127.0.0.1:0", &service{answer: says(0, "www.example.org. 60 IN A 192.0.2.1")}))
	r.refuses.Store(1)
	r.first.Store(true)
	g := asking(t, r.Addr().String())
	if _, _, err := ask(g, "www.example.org."); err == nil {
		t.Fatal("who closes connections has answered")
	}
	eventually.Holds(t, "an answer", func() bool {
		_, _, err := ask(g, "www.example.org.")
		return err == nil
	})
	if r.opened.Load() < 2 || r.left.Load() {
		t.Errorf("%d connections, and the first one was waited for", r.opened.Load())
	}
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
