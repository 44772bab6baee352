package nonblock

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/coredns/coredns/plugin/pkg/sockcall"
	"golang.org/x/sys/unix"
)

// socket is a connection that this package can use: net's, or one of Adopt.
type socket interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

// tcpConn is a connection. What net offers to copy files faster is hidden, so that all goes by Read and Write.
type tcpConn struct {
	net.Conn
	tcp    socket
	reads  half
	writes half
}

// half is one direction. mu is held while it is used.
type half struct {
	mu     sync.Mutex
	system func(fd uintptr, p []byte) (int, syscall.Errno) // reads or writes what it can
	whole  bool                                            // goes on until all of p is done
	wait   func(func(uintptr) bool) error                  // has the poller wait as long as that reports false
	run    func(uintptr) bool                              // step as value, made once
	acks   atomic.Bool                                     // of reads; see QuickAck

	p     []byte
	n     int           // octets done
	errno syscall.Errno // 0 for none
}

// Conn is conn, or, if it is a *net.TCPConn or of Adopt, one that reads and writes as this package does. It must not be
// used beside what is returned, but for being closed and having its deadlines set. No connection is none.
func Conn(conn net.Conn) net.Conn {
	switch conn := conn.(type) {
	case *net.TCPConn:
		return of(conn)
	case *adopted:
		return of(conn)
	}
	return conn
}

func of(tcp socket) net.Conn {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return tcp
	}
	c := &tcpConn{Conn: tcp, tcp: tcp}
	c.reads.system, c.reads.wait, c.reads.run = sockcall.Receive, raw.Read, c.reads.step
	c.writes.system, c.writes.wait, c.writes.run, c.writes.whole = sockcall.Send, raw.Write, c.writes.step, true
	return c
}

func (c *tcpConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.reads.do(p)
	switch {
	case err != nil:
		return 0, c.failed("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (c *tcpConn) Write(p []byte) (int, error) {
	n, err := c.writes.do(p)
	if err != nil {
		return n, c.failed("write", err)
	}
	return n, nil
}

// CloseWrite closes our side, so that the peer reads that no more comes.
func (c *tcpConn) CloseWrite() error { return c.tcp.CloseWrite() }

// do reads into p, or writes it, and returns how many octets went. An error is the system's, or what the poller
// says, such as that a deadline is over.
func (h *half) do(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.p, h.n, h.errno = p, 0, 0
	err := h.wait(h.run)
	h.p = nil
	if err == nil && h.errno != 0 {
		err = h.errno
	}
	return h.n, err
}

// step does what can be done now. It reports false to wait until there is more to read, or the socket takes more.
func (h *half) step(fd uintptr) bool {
	for {
		n, e := h.system(fd, h.p[h.n:])
		switch e {
		case 0:
			if h.n += n; !h.whole || h.n == len(h.p) {
				return true
			}
		case unix.EINTR:
		case unix.EAGAIN:
			if h.acks.Load() {
				acknowledge(fd)
			}
			return false
		default:
			h.errno = e
			return true
		}
	}
}

// failed is err as net has it.
func (c *tcpConn) failed(op string, err error) error {
	var told *net.OpError
	if errors.As(err, &told) { // by the poller
		err = told.Err
	}
	if errno, ok := err.(syscall.Errno); ok {
		err = os.NewSyscallError(op, errno)
	} else if !errors.Is(err, os.ErrDeadlineExceeded) {
		err = net.ErrClosed // for which the poller has an error of its own with descriptors that are not net's
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
