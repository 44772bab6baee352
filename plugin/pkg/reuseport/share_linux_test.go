package reuseport

import (
	"syscall"
	"testing"

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
