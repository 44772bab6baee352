package proxy

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"

	"golang.org/x/sys/unix"
)

// errorsTold is a receiver that tells of errors.
type errorsTold struct {
	receiver
	about chan netip.AddrPort
}

func (r errorsTold) failed(s *udpSocket, about netip.AddrPort, err error) {
	r.receiver.failed(s, about, err)
	r.about <- about
}

// openProxy is a Proxy of NewOpen, and whom errors are about.
func openProxy(t *testing.T) (*Proxy, chan netip.AddrPort) {
	p, about := NewOpen("test"), make(chan netip.AddrPort, 100)
	p.engine.udp.make = func(r receiver) (sockets, error) { return newSockets(errorsTold{r, about}) }
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
	p, about := openProxy(t)
	c := &call{done: make(chan struct{}, 1)}
	c.x = Exchange{Query: packedQuery("www.example.org."), To: p.NewPeer(addr), Timeout: 5 * time.Second, Owner: c}
	p.Begin(&c.x)
	send := <-reply
	p.engine.mu.Lock()
	fd := p.engine.udp.none.all[0].socket.(*epollSocket).fd
	p.engine.mu.Unlock()
	if err := unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: int(nobody.Port()), Addr: nobody.Addr().As4()}); err != nil {
		t.Fatal(err)
	}
	if to := <-about; to != nobody || len(c.done) != 0 {
		t.Fatalf("an error about %v, %d exchanges ended", to, len(c.done))
	}
	send()
	if <-c.done; c.x.Err != nil {
		t.Error(c.x.Err)
	}
}

// heldSpare is a socket that has had an exchange with a server, and is read by read only.
func heldSpare(t *testing.T) (addr netip.AddrPort, about chan netip.AddrPort, kept *epollSocket, read func()) {
	t.Helper()
	addr = netip.MustParseAddrPort(udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) { send(echoed(q)) }))
	p, about := openProxy(t)
	loop, watch := eventloop.New(), new(lookout)
	t.Cleanup(loop.Close)
	loop.WatchWith(watch)
	c := &call{done: make(chan struct{}, 1)}
	c.x = Exchange{Query: packedQuery("www.example.org."), To: p.NewPeer(addr), Timeout: 5 * time.Second, Owner: c}
	loop.Enter()
	p.BeginIn(&c.x, loop)
	loop.Done(0)
	loop.Leave()
	all := watch.all()
	if len(all) != 1 {
		t.Fatalf("%d sockets are read in the loop", len(all))
	}
	read = func() {
		loop.Enter()
		all[0].ReadIn(loop)
		loop.Leave()
	}
	for deadline := time.Now().Add(5 * time.Second); len(c.done) == 0; read() {
		if time.Now().After(deadline) {
			t.Fatal("no reply")
		}
	}
	if n := p.engine.spares.count(); c.x.Err != nil || n != 1 {
		t.Fatalf("%v, %d sockets are kept", c.x.Err, n)
	}
	return addr, about, all[0].(*epollSocket), read
}

// refusedBy sends a datagram to where nobody listens, from a socket that is not read meanwhile.
func refusedBy(t *testing.T, e *epollSocket) (nobody netip.AddrPort) {
	t.Helper()
	nobody = nobodyAt(t, net.IPv4(127, 0, 0, 1))
	if err := unix.Sendto(e.fd, []byte("x"), 0, &unix.SockaddrInet4{Port: int(nobody.Port()), Addr: nobody.Addr().As4()}); err != nil {
		t.Fatal(err)
	}
	return nobody
}

// An error that nobody has read yet, of an exchange that is over, is not the next one's.
func TestErrorOfFormerExchange(t *testing.T) {
	addr, _, kept, _ := heldSpare(t)
	refusedBy(t, kept)
	kept.aim(addr)
	if err := kept.send(packedQuery("www.example.org.")); err != nil {
		t.Error(err)
	}
}

// An error of which the system has told already is taken from its queue: as long as it is there, there is something to
// be read for those who watch.
func TestErrorIsTakenFromTheQueue(t *testing.T) {
	_, about, kept, read := heldSpare(t)
	nobody := refusedBy(t, kept)
	if errno, err := unix.GetsockoptInt(kept.fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || errno != int(unix.ECONNREFUSED) {
		t.Fatal(errno, err)
	}
	read()
	if len(about) != 1 {
		t.Fatalf("%d errors are told", len(about))
	}
	if to := <-about; to != nobody {
		t.Errorf("an error about %v", to)
	}
	if _, _, ok := kept.nextError(); ok {
		t.Error("it is still there")
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
