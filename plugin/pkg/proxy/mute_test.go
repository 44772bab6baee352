package proxy

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
)

// beginStream asks a Peer over TCP.
func beginStream(p *Proxy, to *Peer) *call {
	c := &call{done: make(chan struct{}, 1)}
	c.x = Exchange{Query: packedQuery("www.example.org."), To: to, Stream: true, Timeout: 20 * time.Second, Owner: c}
	p.Begin(&c.x)
	return c
}

// A Peer that answers the first query of a connection, and then keeps silent on it, is asked once more on another one, and
// soon gets a connection for each query.
func TestMuteConnections(t *testing.T) {
	var queries atomic.Int64
	addr := tcpUpstream(t, func(conn net.Conn) {
		for n := 0; ; n++ {
			q, err := readFrame(conn)
			if err != nil {
				return
			}
			if queries.Add(1); n == 0 {
				conn.Write(frame(replyTo(q)))
			}
		}
	})
	p := NewOpen("test")
	p.Start(time.Second)
	t.Cleanup(p.Stop)
	to := p.NewPeer(netip.MustParseAddrPort(addr))
	const asked = 12
	for n := range asked {
		c := beginStream(p, to)
		<-c.done
		if c.x.Err != nil {
			t.Fatalf("query %d: %v", n, c.x.Err)
		}
	}
	if n := queries.Load(); n != asked+muteTwice {
		t.Errorf("it saw %d queries, want %d", n, asked+muteTwice)
	}
}

// A Peer that takes longer than that for each reply is asked once, and on connections that stay.
func TestSlowIsNotMute(t *testing.T) {
	var queries, conns atomic.Int64
	addr := tcpUpstream(t, func(conn net.Conn) {
		conns.Add(1)
		for {
			q, err := readFrame(conn)
			if err != nil {
				return
			}
			queries.Add(1)
			time.Sleep(muteWait + 100*time.Millisecond)
			conn.Write(frame(replyTo(q)))
		}
	})
	p := NewOpen("test")
	p.Start(time.Second)
	t.Cleanup(p.Stop)
	to := p.NewPeer(netip.MustParseAddrPort(addr))
	const asked = 4
	for n := range asked {
		c := beginStream(p, to)
		<-c.done
		if c.x.Err != nil {
			t.Fatalf("query %d: %v", n, c.x.Err)
		}
	}
	if n, m := queries.Load(), conns.Load(); n != asked || m != 1 {
		t.Errorf("it saw %d queries on %d connections, want %d on 1", n, m, asked)
	}
}

// Queries that are lost at one time, on several connections, are one loss: those that were opened then are used again.
func TestMuteAtOneTime(t *testing.T) {
	var conns atomic.Int64
	var lost atomic.Int64 // queries that are lost next
	addr := tcpUpstream(t, func(conn net.Conn) {
		conns.Add(1)
		for {
			q, err := readFrame(conn)
			if err != nil {
				return
			}
			if lost.Add(-1) < 0 {
				conn.Write(frame(replyTo(q)))
			}
		}
	})
	p := NewOpen("test")
	p.Start(time.Second)
	t.Cleanup(p.Stop)
	to := p.NewPeer(netip.MustParseAddrPort(addr))
	begin := func() *call { return beginStream(p, to) }
	wait := func(all ...*call) {
		t.Helper()
		for _, c := range all {
			if <-c.done; c.x.Err != nil {
				t.Fatal(c.x.Err)
			}
		}
	}
	wait(begin(), begin(), begin())
	lost.Store(3)
	wait(begin(), begin(), begin())
	opened := conns.Load()
	for range 4 {
		wait(begin())
	}
	if n := conns.Load(); n != opened {
		t.Errorf("%d connections were opened for 4 queries in turn", n-opened)
	}
}
