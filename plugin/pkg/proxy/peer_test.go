package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// peerServer answers over UDP with what datagrams makes of a query, and over TCP truly. It tells the ports that queries came
// from.
func peerServer(t *testing.T, datagrams func(query []byte) [][]byte) (addr netip.AddrPort, ports chan uint16) {
	t.Helper()
	p, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ports = make(chan uint16, 100)
	tcp := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) { _ = w.WriteMsg(new(dns.Msg).SetReply(q)) })}
	go func() { _ = tcp.ActivateAndServe() }()
	go func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := p.(*net.UDPConn).ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			ports <- from.Port()
			for _, b := range datagrams(buf[:n]) {
				_, _ = p.(*net.UDPConn).WriteToUDPAddrPort(b, from)
			}
		}
	}()
	t.Cleanup(func() { p.Close(); _ = tcp.Shutdown() })
	return netip.MustParseAddrPort(p.LocalAddr().String()), ports
}

func echoed(query []byte) []byte {
	b := append([]byte(nil), query...)
	b[2] |= 0x80
	return b
}

func withID(b []byte, add uint16) []byte {
	b = append([]byte(nil), b...)
	binary.BigEndian.PutUint16(b, binary.BigEndian.Uint16(b)+add)
	return b
}

// askOnce asks a Peer and waits.
func askOnce(p *Proxy, to *Peer, stream bool) *call {
	c := &call{done: make(chan struct{}, 1)}
	c.x = Exchange{Query: packedQuery("www.example.org."), To: to, Stream: stream, MixCase: true, Timeout: time.Second, Owner: c}
	p.Begin(&c.x)
	<-c.done
	return c
}

func packedQuery(name string) []byte {
	b, err := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
	if err != nil {
		panic(err)
	}
	return b
}

// Two datagrams with wrong ids end a query to a Peer: its port is nobody else's.
func TestPeerForged(t *testing.T) {
	for n, want := range []error{nil, nil, ErrForged} {
		addr, _ := peerServer(t, func(q []byte) (all [][]byte) {
			for i := range n {
				all = append(all, withID(echoed(q), uint16(i+1)))
			}
			time.Sleep(20 * time.Millisecond)
			return append(all, echoed(q))
		})
		p := NewOpen("test")
		ignored := 0
		p.OnIgnored(func(reason string, n int) {
			if reason == "id" {
				ignored += n
			}
		})
		c := askOnce(p, p.NewPeer(addr), false)
		p.Stop()
		if !errors.Is(c.x.Err, want) || ignored < n {
			t.Errorf("%d wrong ids: %v, want %v; %d ignored", n, c.x.Err, want, ignored)
		}
	}
}

// Each query to a Peer has a port of its own, which is closed behind it; over TCP they share a connection.
func TestPeerPorts(t *testing.T) {
	addr, ports := peerServer(t, func(q []byte) [][]byte { return [][]byte{echoed(q)} })
	p := NewOpen("test")
	defer p.Stop()
	to := p.NewPeer(addr)
	seen := map[uint16]bool{}
	for range 50 {
		if c := askOnce(p, to, false); c.x.Err != nil {
			t.Fatal(c.x.Err)
		}
		seen[<-ports] = true
	}
	p.engine.mu.Lock()
	open := p.engine.udp.n
	p.engine.mu.Unlock()
	if len(seen) < 40 || open != 0 {
		t.Errorf("%d ports for 50 queries, %d sockets open", len(seen), open)
	}
	for range 5 {
		if c := askOnce(p, to, true); c.x.Err != nil || c.x.Proto != "tcp" {
			t.Fatal(c.x.Err)
		}
	}
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	if len(to.streams.conns) != 1 || len(p.engine.peers) != 1 {
		t.Errorf("%d connections, %d peers with any", len(to.streams.conns), len(p.engine.peers))
	}
}

// A server with a link-local address is told from one with the same address on another link, by the interface's name or
// its number.
func TestPeerOnLink(t *testing.T) {
	var local netip.Addr
	var index int
	all, _ := net.Interfaces()
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if a, err := netip.ParsePrefix(a.String()); err == nil && a.Addr().Is6() && a.Addr().IsLinkLocalUnicast() && i.Flags&net.FlagUp != 0 {
				local, index = a.Addr().WithZone(i.Name), i.Index
			}
		}
	}
	if !local.IsValid() {
		t.Skip("no link-local address here")
	}
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0)))
	if err != nil {
		t.Skip(err)
	}
	defer c.Close()
	go func() {
		buf := make([]byte, 512)
		for {
			n, from, err := c.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			c.WriteToUDPAddrPort(echoed(buf[:n]), from)
		}
	}()
	p := NewOpen("test")
	defer p.Stop()
	ignored := 0
	p.OnIgnored(func(reason string, n int) { ignored += n })
	port := c.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	for _, zone := range []string{local.Zone(), strconv.Itoa(index)} {
		if c := askOnce(p, p.NewPeer(netip.AddrPortFrom(local.WithZone(zone), port)), false); c.x.Err != nil {
			t.Errorf("%s: %v", zone, c.x.Err)
		}
	}
	other := p.NewPeer(netip.AddrPortFrom(local, port))
	other.source = netip.AddrPortFrom(local.WithZone("other0"), port)
	if c := askOnce(p, other, false); c.x.Err == nil || ignored == 0 {
		t.Errorf("a reply of another link is taken: %v, %d ignored", c.x.Err, ignored)
	}
}

// Letters that are not repeated are told of when time is over.
func TestPeerDoubted(t *testing.T) {
	addr, _ := peerServer(t, func(q []byte) [][]byte {
		b := echoed(q)
		b[13] ^= 0x20
		return [][]byte{b}
	})
	p := NewOpen("test")
	defer p.Stop()
	if c := askOnce(p, p.NewPeer(addr), false); c.x.Err == nil || c.x.Doubted != 1 {
		t.Errorf("%v, doubted %d", c.x.Err, c.x.Doubted)
	}
}

// broken is a reply with a record whose owner points to itself.
func broken(q []byte) []byte {
	b := append(echoed(q), 0xc0, byte(len(q)), 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1)
	b[7] = 1
	return b
}

// A Peer's reply that cannot be unpacked ends its query at once, as no other reply will come; one that has another id or
// question as well is waited past.
func TestPeerMalformed(t *testing.T) {
	odd := func(q []byte) []byte {
		b := broken(q)
		b[13] = '1'
		return b
	}
	for what, c := range map[string]struct {
		replies func(q []byte) [][]byte
		want    error
		ignored string
	}{
		"malformed":        {func(q []byte) [][]byte { return [][]byte{broken(q)} }, ErrMalformed, "1 malformed"},
		"another id":       {func(q []byte) [][]byte { return [][]byte{withID(broken(q), 1), echoed(q)} }, nil, "1 id"},
		"another question": {func(q []byte) [][]byte { return [][]byte{odd(q), echoed(q)} }, nil, "1 question"},
	} {
		addr, _ := peerServer(t, c.replies)
		p := NewOpen("test")
		ignored := ""
		p.OnIgnored(func(reason string, n int) { ignored += fmt.Sprint(n, " ", reason) })
		got := askOnce(p, p.NewPeer(addr), false)
		p.Stop()
		if !errors.Is(got.x.Err, c.want) || ignored != c.ignored {
			t.Errorf("%s: %v, ignored %q", what, got.x.Err, ignored)
		}
	}
}

// The same holds over TCP, where nothing can have cut off what is missing.
func TestPeerMalformedOverTCP(t *testing.T) {
	for what, c := range map[string]struct {
		reply   func(q []byte) []byte
		ignored string
	}{
		"malformed":   {broken, "1 malformed"},
		"one missing": {func(q []byte) []byte { b := echoed(q); b[7]++; return b }, "1 cut_short"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
			b, err := q.Pack()
			if err != nil {
				panic(err)
			}
			_, _ = w.Write(c.reply(b))
		})}
		go func() { _ = server.ActivateAndServe() }()
		p := NewOpen("test")
		ignored := ""
		p.OnIgnored(func(reason string, n int) { ignored += fmt.Sprint(n, " ", reason) })
		got := askOnce(p, p.NewPeer(netip.MustParseAddrPort(l.Addr().String())), true)
		p.Stop()
		_ = server.Shutdown()
		if !errors.Is(got.x.Err, ErrMalformed) || ignored != c.ignored {
			t.Errorf("%s: %v, ignored %q", what, got.x.Err, ignored)
		}
	}
}

// What has another opcode is no reply, whatever else it has of one (RFC 1035 §4.1.1).
func TestPeerOtherOpcode(t *testing.T) {
	addr, _ := peerServer(t, func(q []byte) [][]byte {
		notify := echoed(q)
		notify[2] |= dns.OpcodeNotify << 3
		return [][]byte{notify, echoed(q)}
	})
	p := NewOpen("test")
	ignored := ""
	p.OnIgnored(func(reason string, n int) { ignored += fmt.Sprint(n, " ", reason) })
	c := askOnce(p, p.NewPeer(addr), false)
	p.Stop()
	if c.x.Err != nil || ignored != "1 not_reply" {
		t.Errorf("%v, ignored %q", c.x.Err, ignored)
	}
}

// A reply may come before the call returns that has sent its query, and the socket may be aimed at another server by then.
// The race detector tells.
func TestPeerSocketIsUsedAgainAtOnce(t *testing.T) {
	var peers []netip.AddrPort
	for range 2 {
		addr, ports := peerServer(t, func(q []byte) [][]byte { return [][]byte{echoed(q)} })
		go func() {
			for {
				select {
				case <-ports:
				case <-t.Context().Done():
					return
				}
			}
		}()
		peers = append(peers, addr)
	}
	p := NewOpen("test")
	defer p.Stop()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			to := p.NewPeer(peers[i%2])
			for range 300 {
				if c := askOnce(p, to, false); c.x.Err != nil {
					t.Error(c.x.Err)
					return
				}
			}
		})
	}
	all.Wait()
}
