package proxy

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/udpsockets"
)

// errorsTold is sockets that tell of errors, too.
type errorsTold struct {
	udpsockets.Set
	about chan netip.AddrPort
}

func (s errorsTold) Open(local netip.Addr, remote netip.AddrPort, to udpsockets.Receiver, loop *eventloop.Loop) (udpsockets.Socket, error) {
	return s.Set.Open(local, remote, errorsHeard{to, s.about}, loop)
}

type errorsHeard struct {
	udpsockets.Receiver
	about chan netip.AddrPort
}

func (r errorsHeard) Failed(about netip.AddrPort, err error) {
	r.Receiver.Failed(about, err)
	r.about <- about
}

// openProxy is a Proxy of NewOpen, and whom errors are about.
func openProxy(t *testing.T) (*Proxy, chan netip.AddrPort) {
	p, about := NewOpen("test"), make(chan netip.AddrPort, 100)
	p.engine.udp.make = func() (udpsockets.Set, error) {
		all, err := udpsockets.New()
		return errorsTold{all, about}, err
	}
	t.Cleanup(p.Stop)
	return p, about
}

// nobodyAt is an address at which nobody listens.
func nobodyAt(t *testing.T, ip net.IP) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip})
	if err != nil {
		t.Skip("there is no such address:", err)
	}
	defer conn.Close()
	return netip.MustParseAddrPort(conn.LocalAddr().String())
}

// A socket that is not connected learns all the same that nobody listens, at once, and does for other servers then.
func TestPeerRefuses(t *testing.T) {
	for name, ip := range map[string]net.IP{"IPv4": net.IPv4(127, 0, 0, 1), "IPv6": net.IPv6loopback} {
		t.Run(name, func(t *testing.T) {
			nobody := nobodyAt(t, ip)
			listening, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip})
			if err != nil {
				t.Fatal(err)
			}
			somebody := netip.MustParseAddrPort(serveDatagrams(t, listening, func(q []byte, _ *net.UDPAddr, send func([]byte)) { send(echoed(q)) }))
			p, about := openProxy(t)
			for range 3 {
				if c := askOnce(p, p.NewPeer(somebody), false); c.x.Err != nil || p.engine.spares.count() != 1 {
					t.Fatalf("%v, %d sockets are kept", c.x.Err, p.engine.spares.count())
				}
				c := askOnce(p, p.NewPeer(nobody), false) // on that socket, which has a port by now
				if !errors.Is(c.x.Err, syscall.ECONNREFUSED) || p.engine.spares.count() != 0 {
					t.Fatalf("%v, %d sockets are kept", c.x.Err, p.engine.spares.count())
				}
				if to := <-about; to != nobody {
					t.Errorf("the error was about %v, not about %v", to, nobody)
				}
			}
		})
	}
}

// What ICMP tells of somebody else ends no exchange, and takes nothing from the one that is under way.
func TestErrorAboutSomebodyElse(t *testing.T) {
	reply := make(chan func(), 1)
	addr := netip.MustParseAddrPort(udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		reply <- func() { send(echoed(q)) }
	}))
	nobody := nobodyAt(t, net.IPv4(127, 0, 0, 1))
	p, _ := openProxy(t)
	c := &call{done: make(chan struct{}, 1)}
	c.x = Exchange{Query: packedQuery("www.example.org."), To: p.NewPeer(addr), Timeout: 5 * time.Second, Owner: c}
	p.Begin(&c.x)
	send := <-reply
	p.engine.mu.Lock()
	s := p.engine.udp.none.all[0]
	p.engine.mu.Unlock()
	if s.Failed(nobody, syscall.ECONNREFUSED); len(c.done) != 0 {
		t.Fatal("the exchange has ended")
	}
	send()
	if <-c.done; c.x.Err != nil {
		t.Error(c.x.Err)
	}
}

// A socket that is bound to an address keeps it as it changes its port.
func TestSpareKeepsAddress(t *testing.T) {
	from := make(chan netip.AddrPort, 100)
	addr := netip.MustParseAddrPort(udpUpstream(t, func(q []byte, a *net.UDPAddr, send func([]byte)) {
		from <- a.AddrPort()
		send(echoed(q))
	}))
	p, _ := openProxy(t)
	seen := map[netip.AddrPort]bool{}
	for range 20 {
		c := &call{done: make(chan struct{}, 1)}
		c.x = Exchange{Query: packedQuery("www.example.org."), To: p.NewPeer(addr), From: netip.MustParseAddr("127.0.0.2"), Timeout: time.Second, Owner: c}
		p.Begin(&c.x)
		if <-c.done; c.x.Err != nil || p.engine.spares.count() != 1 {
			t.Fatalf("%v, %d sockets are kept", c.x.Err, p.engine.spares.count())
		}
		a := <-from
		seen[a] = true
		if a.Addr().Unmap() != c.x.From {
			t.Errorf("a query came from %v", a)
		}
	}
	if len(seen) < 15 {
		t.Errorf("%d ports in 20 queries", len(seen))
	}
}
