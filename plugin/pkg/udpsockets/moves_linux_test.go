package udpsockets

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"

	"golang.org/x/sys/unix"
)

// nobody watches what is opened in a loop: it is read when the test says so.
type nobody struct{}

func (nobody) Watch(int, eventloop.Readable) (int32, error) { return 1, nil }
func (nobody) Unwatch(int32)                                {}

// heard is what came in on one socket.
type heard struct {
	waits     atomic.Bool
	datagrams []string
	from      []netip.AddrPort
	about     []netip.AddrPort // of errors
}

func (h *heard) Moves() bool { return true }
func (h *heard) Waits() bool { return h.waits.Load() }
func (h *heard) Now() int64  { return 1 }

func (h *heard) Received(all *Batch, _ *eventloop.Loop, _ int64) {
	for _, b := range all.Datagrams {
		h.datagrams, h.from = append(h.datagrams, string(b)), append(h.from, all.From)
	}
	all.Datagrams = all.Datagrams[:0]
}

func (h *heard) Failed(about netip.AddrPort, _ error) { h.about = append(h.about, about) }

// echo is the address of a server that sends all back.
func echo(t *testing.T) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			conn.WriteToUDPAddrPort(b[:n], from)
		}
	}()
	return netip.MustParseAddrPort(conn.LocalAddr().String())
}

// movable is a socket to a server, which is read by read only.
func movable(t *testing.T, to netip.AddrPort) (e *epollSocket, h *heard, read func()) {
	t.Helper()
	all, err := New()
	if err != nil {
		t.Fatal(err)
	}
	loop := eventloop.New()
	loop.WatchWith(nobody{})
	h = new(heard)
	h.waits.Store(true)
	s, err := all.Open(netip.Addr{}, to, h, loop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		all.Stop()
		loop.Close()
	})
	e = s.(*epollSocket)
	return e, h, func() {
		loop.Enter()
		e.ReadIn(loop)
		loop.Leave()
	}
}

// refusedBy sends a datagram to where nobody listens, from a socket that is not read meanwhile.
func refusedBy(t *testing.T, e *epollSocket) (none netip.AddrPort) {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	none = netip.MustParseAddrPort(conn.LocalAddr().String())
	conn.Close()
	if err := unix.Sendto(e.fd, []byte("x"), 0, &unix.SockaddrInet4{Port: int(none.Port()), Addr: none.Addr().As4()}); err != nil {
		t.Fatal(err)
	}
	return none
}

// A socket gets another port each time that it leaves the one before, and knows who sends to it.
func TestMoves(t *testing.T) {
	servers := []netip.AddrPort{echo(t), echo(t)}
	e, h, read := movable(t, servers[0])
	ports := map[uint16]bool{}
	for i := range 20 {
		to := servers[i%2]
		e.Aim(to)
		h.datagrams, h.from = nil, nil
		if err := e.Send([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		own, err := ownAddr(e.fd)
		if err != nil {
			t.Fatal(err)
		}
		ports[own.(*net.UDPAddr).AddrPort().Port()] = true
		eventually.Holds(t, "it comes back", func() bool { read(); return len(h.datagrams) == 1 })
		if h.datagrams[0] != "hello" || h.from[0] != to {
			t.Errorf("%q from %v, not from %v", h.datagrams[0], h.from[0], to)
		}
		if err := e.Leave(); err != nil {
			t.Fatal(err)
		}
	}
	if len(ports) < 15 {
		t.Errorf("%d ports in 20 moves", len(ports))
	}
}

// An error that nobody has read yet, of an exchange that is over, is not the next one's.
func TestErrorOfFormerExchange(t *testing.T) {
	to := echo(t)
	e, _, _ := movable(t, to)
	refusedBy(t, e)
	e.Aim(to)
	if err := e.Send([]byte("hello")); err != nil {
		t.Error(err)
	}
}

// An error of which the system has told already is taken from its queue: as long as it is there, there is something to
// be read for those who watch.
func TestErrorIsTakenFromTheQueue(t *testing.T) {
	e, h, read := movable(t, echo(t))
	none := refusedBy(t, e)
	var errno int
	for end := time.Now().Add(5 * time.Second); errno == 0 && time.Now().Before(end); {
		var err error
		if errno, err = unix.GetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil {
			t.Fatal(err)
		}
	}
	if errno != int(unix.ECONNREFUSED) {
		t.Fatal(errno)
	}
	read()
	if len(h.about) != 1 || h.about[0] != none {
		t.Fatalf("errors about %v, not about %v", h.about, none)
	}
	if _, _, ok := e.nextError(); ok {
		t.Error("it is still there")
	}
}

// A socket that was closed before its loop's goroutine ended is nobody's.
func TestClosedSocketIsNoOrphan(t *testing.T) {
	all, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer all.Stop()
	loop := eventloop.New()
	defer loop.Close()
	loop.WatchWith(nobody{})
	s, err := all.Open(netip.Addr{}, netip.MustParseAddrPort("127.0.0.1:9"), nil, loop)
	if err != nil {
		t.Fatal(err)
	}
	fd := s.(*epollSocket).fd
	s.Close()
	var others [2]int // have its number now
	if err := unix.Pipe(others[:]); err != nil {
		t.Fatal(err)
	}
	defer func() { unix.Close(others[0]); unix.Close(others[1]) }()
	if others[0] != fd && others[1] != fd {
		if err := unix.Dup3(others[0], fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	s.(*epollSocket).Orphaned()
	if n := all.(*epollSockets).set.Len(); n != 0 {
		t.Errorf("%d sockets are watched", n)
	}
}
