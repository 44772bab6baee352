package reusegroup

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sockets are two of one address.
func sockets(t *testing.T) (conns [2]*net.UDPConn) {
	t.Helper()
	addr := "127.0.0.1:0"
	for i := range conns {
		lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
			cerr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
			return errors.Join(cerr, err)
		}}
		p, err := lc.ListenPacket(context.Background(), "udp4", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		conns[i], addr = p.(*net.UDPConn), p.LocalAddr().String()
	}
	return conns
}

func descriptor(t *testing.T, c *net.UDPConn) (fd uintptr) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(f uintptr) { fd = f })
	return fd
}

// send sends n datagrams from as many sockets.
func send(t *testing.T, to net.Addr, n int) {
	t.Helper()
	for range n {
		c, err := net.Dial("udp", to.String())
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte("query"))
		c.Close()
	}
}

// read is how many datagrams are queued for a socket.
func read(c *net.UDPConn) (n int) {
	buf := make([]byte, 16)
	for ; ; n++ {
		c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, _, err := c.ReadFrom(buf); err != nil {
			return n
		}
	}
}

func TestKernelIsTold(t *testing.T) {
	conns := sockets(t)
	g := New(conns[1], false)
	if g == nil {
		t.Skip("the kernel knows no programs that choose a socket: Linux 4.5 does")
	}
	const many = 64
	send(t, conns[0].LocalAddr(), many)
	if a, b := read(conns[0]), read(conns[1]); a != many || b != 0 {
		t.Errorf("consolidated: %d and %d", a, b)
	}
	g.Spread()
	send(t, conns[0].LocalAddr(), many)
	if a, b := read(conns[0]), read(conns[1]); a+b != many || a < many/8 || b < many/8 {
		t.Errorf("spread: %d and %d", a, b)
	}
}

func TestQueueIsHalfFull(t *testing.T) {
	conns := sockets(t)
	fd := descriptor(t, conns[0])
	g := New(conns[0], false)
	if g == nil {
		t.Skip("the kernel knows no programs that choose a socket: Linux 4.5 does")
	}
	l := g.Join(fd)
	if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 16<<10); err != nil { // also later
		t.Fatal(err)
	}
	now := time.Now()
	if l.Served(fd, 64, 0, true, now); !g.Consolidated() {
		t.Fatal("spread, and nothing is queued")
	}
	send(t, conns[0].LocalAddr(), 40) // more than half of what 32 KiB, as the kernel doubles it, has room for
	if l.Served(fd, 64, 0, false, now); !g.Consolidated() {
		t.Fatal("spread after a batch that was not full")
	}
	if l.Served(fd, 64, 0, true, now); g.Consolidated() {
		t.Error("consolidated, and the queue is half full")
	}
	if processTime() <= 0 {
		t.Error("the process has used no time")
	}
}
