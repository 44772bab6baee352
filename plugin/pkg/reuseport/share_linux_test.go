package reuseport

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// option returns the value of a socket's option.
func option(t *testing.T, c syscall.Conn, opt int) int {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var value int
	if failed := raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, opt) }); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	return value
}

func TestOptions(t *testing.T) {
	l, err := Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()

	for _, tc := range []struct {
		name   string
		socket any
		addr   int // SO_REUSEADDR
	}{
		{"tcp", l, 1},
		{"udp", p, 0},
	} {
		c := tc.socket.(syscall.Conn)
		if got := option(t, c, unix.SO_REUSEPORT); got != 1 {
			t.Errorf("%s: SO_REUSEPORT is %d", tc.name, got)
		}
		if got := option(t, c, unix.SO_REUSEADDR); got != tc.addr {
			t.Errorf("%s: SO_REUSEADDR is %d, want %d", tc.name, got, tc.addr)
		}
	}
}

// TestKeepAlive: what is accepted is probed when it is idle, as the listener was told.
func TestKeepAlive(t *testing.T) {
	l, err := Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if got := option(t, server.(syscall.Conn), unix.SO_KEEPALIVE); got != 1 {
		t.Errorf("SO_KEEPALIVE is %d", got)
	}
	raw, _ := server.(syscall.Conn).SyscallConn()
	raw.Control(func(fd uintptr) {
		for opt, want := range map[int]int{unix.TCP_KEEPIDLE: 15, unix.TCP_KEEPINTVL: 15, unix.TCP_KEEPCNT: 9, unix.TCP_NODELAY: 1} {
			if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, opt); got != want || err != nil {
				t.Errorf("option %d is %d, want %d: %v", opt, got, want, err)
			}
		}
	})
}

// A socket that was alone shares the address with those that come later: each gets its part, and who is not alone hears
// of it. Somebody else's socket without the option is an error.
func TestListenPacketAlone(t *testing.T) {
	first, others, err := ListenPacketAlone("udp", "127.0.0.1:0")
	if err != nil || others {
		t.Fatalf("others %v, %v", others, err)
	}
	defer first.Close()
	addr := first.LocalAddr().String()
	second, others, err := ListenPacketAlone("udp", addr)
	if err != nil || !others {
		t.Fatalf("others %v, %v", others, err)
	}
	defer second.Close()
	const many = 64
	for range many {
		c, err := net.Dial("udp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte("x"))
		c.Close()
	}
	var got [2]int
	for i, p := range []net.PacketConn{first, second} {
		for {
			p.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			if _, _, err := p.ReadFrom(make([]byte, 8)); err != nil {
				break
			}
			got[i]++
		}
	}
	if got[0]+got[1] != many || got[0] < many/8 || got[1] < many/8 {
		t.Errorf("%v of %d datagrams", got, many)
	}

	alone, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	if p, others, err := ListenPacketAlone("udp", alone.LocalAddr().String()); err == nil || others {
		t.Errorf("shares with %v, others %v", p, others)
	}
}

// A listener that was alone is the one that stays: who has connected meanwhile is served. Later ones get their part.
func TestListenAlone(t *testing.T) {
	first, others, err := ListenAlone("tcp", "127.0.0.1:0")
	if err != nil || others {
		t.Fatalf("others %v, %v", others, err)
	}
	defer first.Close()
	addr := first.Addr().String()
	second, others, err := ListenAlone("tcp", addr)
	if err != nil || !others {
		t.Fatalf("others %v, %v", others, err)
	}
	defer second.Close()
	const many = 64
	for range many {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	var got [2]int
	for i, l := range []net.Listener{first, second} {
		for {
			_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond))
			c, err := l.Accept()
			if err != nil {
				break
			}
			defer c.Close()
			if got[i]++; option(t, c.(syscall.Conn), unix.SO_KEEPALIVE) != 1 {
				t.Error("a connection is not probed")
			}
		}
	}
	if got[0]+got[1] != many || got[0] < many/8 || got[1] < many/8 {
		t.Errorf("%v of %d connections", got, many)
	}

	alone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	if l, others, err := ListenAlone("tcp", alone.Addr().String()); err == nil || others {
		t.Errorf("shares with %v, others %v", l, others)
	}
}

// Where the system cannot probe idle connections the address is shared all the same, and nobody is told otherwise.
func TestNoProbes(t *testing.T) {
	p, err := net.ListenPacket("udp", "127.0.0.1:0") // which has no connections
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	raw, err := p.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := share("tcp", "", raw); err != nil {
		t.Error(err)
	}
	if got := option(t, p.(*net.UDPConn), unix.SO_REUSEPORT); got != 1 {
		t.Errorf("SO_REUSEPORT is %d", got)
	}
}
