package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/packed"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
)

// sharing is a Proxy that shares sockets.
func sharing(t testing.TB, addr string, set ...func(*Proxy)) *Proxy {
	p := proxyTo(t, addr, transport.DNS)
	for _, f := range set {
		f(p)
	}
	p.ShareSockets()
	return p
}

// ports is the ports that a batch with a query of each Proxy came from.
func ports(t *testing.T, seen func() map[int]int, proxies ...*Proxy) map[int]int {
	t.Helper()
	loop := eventloop.New()
	defer loop.Close()
	loop.Enter()
	ends := make(told, len(proxies))
	all := make([]Exchange, len(proxies))
	for i, p := range proxies {
		all[i] = Exchange{Query: packed.Message(t, fmt.Sprintf("x%d.longer-label-of-many-letters.example.org.", i), dns.TypeA), Owner: ends}
		p.BeginIn(&all[i], loop)
	}
	loop.Done(0)
	loop.Leave()
	for range all {
		if x := <-ends; x.Err != nil {
			t.Error(x.Err)
		}
	}
	return seen()
}

// Queries of one batch leave from one port if their Proxies share sockets, and from one each if they do not, or are not
// set alike.
func TestSharedSockets(t *testing.T) {
	var mu sync.Mutex
	from := map[int]int{}
	mixed := 0
	addr := udpUpstream(t, func(q []byte, at *net.UDPAddr, send func([]byte)) {
		mu.Lock()
		from[at.Port]++
		if !bytes.Contains(q, []byte("longer-label-of-many-letters")) {
			mixed++
		}
		mu.Unlock()
		send(replyTo(q))
	})
	seen := func() map[int]int {
		mu.Lock()
		defer mu.Unlock()
		all := from
		from = map[int]int{}
		return all
	}
	patient := func(p *Proxy) { p.SetReadTimeout(time.Minute) } // is of each query
	a, b, c := sharing(t, addr), sharing(t, addr, patient), sharing(t, addr, (*Proxy).RandomizeCase)
	if got := ports(t, seen, a, b, c, a); len(got) != 1 {
		t.Errorf("alike: came from %v", got)
	}
	if mixed != 1 {
		t.Errorf("%d of 4 queries had other letters, want that of one Proxy", mixed)
	}
	other := sharing(t, addr, func(p *Proxy) { p.SetExpire(time.Minute) })
	local := sharing(t, addr, func(p *Proxy) { p.SetLocalAddress(net.IPv4(127, 0, 0, 1)) })
	if got := ports(t, seen, a, other, local, proxyTo(t, addr, transport.DNS)); len(got) != 4 {
		t.Errorf("not alike: came from %v", got)
	}
}

// What tells of an upstream is each Proxy's own.
func TestSharingKeepsHealthApart(t *testing.T) {
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) { send(replyTo(q)) })
	a, b := sharing(t, addr), sharing(t, addr)
	a.Measure()
	b.Measure()
	a.fails.Store(3)
	b.fails.Store(3)
	if _, err := ask(a, "www.example.org.", Options{}); err != nil {
		t.Fatal(err)
	}
	if a.Fails() != 0 || b.Fails() != 3 || a.Latency().Smooth() == 0 || b.Latency().Smooth() != 0 {
		t.Errorf("fails %d and %d, latency %s and %s", a.Fails(), b.Fails(), a.Latency().Smooth(), b.Latency().Smooth())
	}
}

// Stop ends what was asked by one Proxy, and nothing of those that share its sockets. With the last of them the
// sockets are closed.
func TestStopOfOneThatShares(t *testing.T) {
	var go1 sync.WaitGroup
	go1.Add(1)
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		go1.Wait()
		send(replyTo(q))
	})
	a, b := sharing(t, addr), sharing(t, addr)
	ends := make(told, 2)
	xs := [2]Exchange{}
	for i, p := range []*Proxy{a, b} {
		xs[i] = Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Owner: ends, Timeout: time.Minute}
		p.Begin(&xs[i])
	}
	a.Stop()
	if x := <-ends; x != &xs[0] || !errors.Is(x.Err, errStopped) {
		t.Errorf("stopped: %v", x.Err)
	}
	if _, err := ask(a, "www.example.org.", Options{}); !errors.Is(err, errStopped) {
		t.Errorf("a query after Stop: %v", err)
	}
	go1.Done()
	if x := <-ends; x != &xs[1] || x.Err != nil {
		t.Errorf("of the other: %v", x.Err)
	}
	e := xs[1].engine
	b.Stop()
	a.Stop()
	if !e.stopped || e.udp.n != 0 || groups.open[groupKey{"test", addr, *b.transport.conf.Load()}] != nil {
		t.Errorf("stopped %v, %d sockets are left", e.stopped, e.udp.n)
	}
	never := sharing(t, addr)
	never.Stop()
	if _, err := ask(never, "www.example.org.", Options{}); !errors.Is(err, errStopped) {
		t.Errorf("a first query after Stop: %v", err)
	}
}

// waitsFor fails if stop returns before goOn, which it closes, lets it.
func waitsFor(t *testing.T, goOn chan bool, stop func()) {
	t.Helper()
	stopped := make(chan bool)
	go func() {
		stop()
		close(stopped)
	}()
	select {
	case <-stopped:
		t.Error("Stop did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	<-stopped
}

// Stop waits for the owner of an exchange that has just got its reply.
func TestStopWaitsForOwners(t *testing.T) {
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) { send(replyTo(q)) })
	a, b := sharing(t, addr), sharing(t, addr)
	if _, err := ask(b, "www.example.org.", Options{}); err != nil {
		t.Fatal(err)
	}
	told, goOn := make(chan bool), make(chan bool)
	a.Begin(&Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Timeout: time.Minute, Owner: enderFunc(func(*Exchange) {
		told <- true
		<-goOn
	})})
	<-told
	waitsFor(t, goOn, a.Stop)
}

// Of two that leave at one time the last one may end what the other has under way: that one's Stop waits for it, too.
func TestStopWaitsForTheLastMember(t *testing.T) {
	addr := udpUpstream(t, func([]byte, *net.UDPAddr, func([]byte)) {})
	a, b := sharing(t, addr), sharing(t, addr)
	told, goOn := make(chan bool), make(chan bool)
	a.Begin(&Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Timeout: time.Minute, Owner: enderFunc(func(*Exchange) {
		told <- true
		<-goOn
	})})
	b.join()
	g := a.group.Load()
	groups.mu.Lock() // a has begun to leave
	a.left = true
	g.members--
	groups.mu.Unlock()
	var last sync.WaitGroup
	last.Go(b.Stop)
	<-told
	waitsFor(t, goOn, func() { g.proxy.engine.dismiss(a) })
	last.Wait()
	a.Stop()
}

// Proxies come and go while others that share their sockets ask: no exchange ends twice, or after Stop.
func TestSharingUnderWay(t *testing.T) {
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		if rand.IntN(8) > 0 {
			send(replyTo(q))
		}
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				p := NewProxy("test", addr, transport.DNS)
				p.ShareSockets()
				var stopped atomic.Bool
				var ends atomic.Int64
				all := make([]Exchange, 20)
				for i := range all {
					all[i] = Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Timeout: 5 * time.Millisecond}
					all[i].Owner = enderFunc(func(*Exchange) {
						if ends.Add(1); stopped.Load() {
							t.Error("an exchange ended after Stop")
						}
					})
					p.Begin(&all[i])
				}
				p.Stop()
				stopped.Store(true)
				if n := ends.Load(); n != int64(len(all)) {
					t.Errorf("%d ends of %d", n, len(all))
				}
			}
		})
	}
	wg.Wait()
	groups.mu.Lock()
	defer groups.mu.Unlock()
	for key := range groups.open {
		if key.addr == addr {
			t.Error("a group is left")
		}
	}
}
