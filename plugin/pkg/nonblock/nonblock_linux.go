package nonblock

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// tcpConn is a connection. What net offers to copy files faster is hidden, so that all goes by Read and Write.
type tcpConn struct {
	net.Conn
	tcp    *net.TCPConn
	raw    syscall.RawConn
	reads  half
	writes half
}

// half is one direction. mu is held while it is used.
type half struct {
	mu    sync.Mutex
	p     []byte
	n     int                          // octets done
	errno syscall.Errno                // 0 for none
	call  func(fd uintptr) (done bool) // a method as value, made once
}

func of(tcp *net.TCPConn) net.Conn {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return tcp
	}
	c := &tcpConn{Conn: tcp, tcp: tcp, raw: raw}
	c.reads.call, c.writes.call = c.reads.receive, c.writes.send
	return c
}

func (c *tcpConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	h := &c.reads
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin(p)
	n, err := h.end(c.raw.Read(h.call))
	switch {
	case err != nil:
		return 0, c.failed("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (c *tcpConn) Write(p []byte) (int, error) {
	h := &c.writes
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin(p)
	n, err := h.end(c.raw.Write(h.call))
	if err != nil {
		return n, c.failed("write", err)
	}
	return n, nil
}

// CloseWrite closes our side, so that the peer reads that no more comes.
func (c *tcpConn) CloseWrite() error { return c.tcp.CloseWrite() }

// SyscallConn implements syscall.Conn.
func (c *tcpConn) SyscallConn() (syscall.RawConn, error) { return c.raw, nil }

// begin is called before call, with the octets to read into or to write.
func (h *half) begin(p []byte) { h.p, h.n, h.errno = p, 0, 0 }

// end is called after it, with what the poller says, such as that a deadline is over.
func (h *half) end(err error) (n int, _ error) {
	h.p = nil
	if err == nil && h.errno != 0 {
		err = h.errno
	}
	return h.n, err
}

// receive reads once. It reports false to wait until there is something.
func (h *half) receive(fd uintptr) bool {
	for {
		n, e := receive(fd, h.p)
		switch e {
		case 0:
			h.n = n
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			h.errno = e
			return true
		}
	}
}

// send writes all. It reports false to wait until the socket takes more.
func (h *half) send(fd uintptr) bool {
	for h.n < len(h.p) {
		n, e := send(fd, h.p[h.n:])
		switch e {
		case 0:
			h.n += n
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			h.errno = e
			return true
		}
	}
	return true
}

// failed is err as net has it.
func (c *tcpConn) failed(op string, err error) error {
	var told *net.OpError
	if errors.As(err, &told) { // by the poller
		err = told.Err
	}
	if errno, ok := err.(syscall.Errno); ok {
		err = os.NewSyscallError(op, errno)
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
