package loopback

import (
	"net"
	"sync/atomic"
	"syscall"
)

// Failing is l, which accepts nothing at first: so many times it fails, with an error of the system. It is for tests of
// servers that outlast that.
func Failing(l net.Listener, times int, why syscall.Errno) net.Listener {
	f := &failing{Listener: l, why: why}
	f.left.Store(int64(times))
	return f
}

type failing struct {
	net.Listener
	left atomic.Int64
	why  syscall.Errno
}

// Accept implements net.Listener.
func (f *failing) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: f.why}
	}
	return f.Listener.Accept()
}
