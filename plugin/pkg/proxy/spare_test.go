package proxy

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/udpsockets"
)

// One socket serves queries to several servers one after the other, on another port each time, and none stays when the
// Proxy has stopped.
func TestSpareSockets(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sockets are not moved here")
	}
	before, kept := peerBudget.used.Load(), spareBudget.used.Load()
	p := NewOpen("test")
	var all []*Peer
	var from []chan uint16
	for range 3 {
		addr, ports := peerServer(t, func(q []byte) [][]byte { return [][]byte{echoed(q)} })
		all, from = append(all, p.NewPeer(addr)), append(from, ports)
	}
	seen := map[uint16]bool{}
	for i := range 60 {
		if c := askOnce(p, all[i%3], false); c.x.Err != nil {
			t.Fatal(c.x.Err)
		}
		seen[<-from[i%3]] = true
	}
	if n := p.engine.spares.count(); n != 1 || len(seen) < 50 {
		t.Errorf("%d sockets are kept after 60 queries, %d ports", n, len(seen))
	}
	p.Stop()
	if n := p.engine.spares.count(); n != 0 || peerBudget.used.Load() != before || spareBudget.used.Load() != kept {
		t.Errorf("%d sockets are left, %d places taken, %d of them for spare ones", n, peerBudget.used.Load()-before, spareBudget.used.Load()-kept)
	}
}

// A query that had no reply takes its socket with it: something may still come.
func TestSpareOnlyAfterReply(t *testing.T) {
	addr, _ := peerServer(t, func(q []byte) [][]byte { return nil })
	p := NewOpen("test")
	defer p.Stop()
	if c := askOnce(p, p.NewPeer(addr), false); c.x.Err == nil || p.engine.spares.count() != 0 {
		t.Errorf("%v, %d sockets are kept", c.x.Err, p.engine.spares.count())
	}
}

// A datagram of another server than the one that is asked is none, be its id and question right.
func TestSenderIsChecked(t *testing.T) {
	addr, ports := peerServer(t, func(q []byte) [][]byte { return nil })
	p := NewOpen("test")
	defer p.Stop()
	ignored := 0
	p.OnIgnored(func(reason string, n int) {
		if reason == "address" {
			ignored += n
		}
	})
	c := &call{done: make(chan struct{}, 1)}
	c.x = Exchange{Query: packedQuery("www.example.org."), To: p.NewPeer(addr), Timeout: 5 * time.Second, Owner: c}
	p.Begin(&c.x)
	<-ports
	s := p.engine.udp.none.all[0]
	reply := func(from netip.AddrPort) {
		p.engine.received(s, &udpsockets.Batch{Datagrams: [][]byte{echoed(c.x.Query)}, From: from}, nil, p.engine.now())
	}
	for _, from := range []netip.AddrPort{
		netip.AddrPortFrom(addr.Addr(), addr.Port()+1), netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), addr.Port()),
	} {
		reply(from)
	}
	if len(c.done) != 0 || ignored != 2 {
		t.Fatalf("%d ended, %d ignored", len(c.done), ignored)
	}
	reply(addr)
	if <-c.done; c.x.Err != nil {
		t.Error(c.x.Err)
	}
}
