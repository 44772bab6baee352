package nonblock

import (
	"net"
	"os"
	"syscall"

	"github.com/coredns/coredns/plugin/pkg/sockcall"
	"golang.org/x/sys/unix"
)

// Receive reads from a socket into p what is there, and does not wait: the error is EAGAIN if that is nothing.
func Receive(fd int, p []byte) (int, syscall.Errno) { return again(sockcall.Receive, fd, p) }

// Send writes to a socket what of p it takes, and does not wait: the error is EAGAIN if that is nothing.
func Send(fd int, p []byte) (int, syscall.Errno) { return again(sockcall.Send, fd, p) }

// Close closes a socket that does not linger, and so does not wait.
func Close(fd int) { unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// again does what a signal has interrupted once more.
func again(do func(uintptr, []byte) (int, syscall.Errno), fd int, p []byte) (n int, e syscall.Errno) {
	for e = unix.EINTR; e == unix.EINTR; {
		n, e = do(uintptr(fd), p)
	}
	return max(n, 0), e
}

// Adopt is a connection of the TCP socket fd, which does not block and is the connection's from now on.
func Adopt(fd int, local, remote *net.TCPAddr) net.Conn {
	return &adopted{os.NewFile(uintptr(fd), "tcp"), local, remote}
}

// adopted is a descriptor as a connection.
type adopted struct {
	*os.File
	local, remote *net.TCPAddr
}

func (a *adopted) LocalAddr() net.Addr  { return a.local }
func (a *adopted) RemoteAddr() net.Addr { return a.remote }

// CloseWrite closes our side, so that the peer reads that no more comes.
func (a *adopted) CloseWrite() error {
	raw, err := a.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) }); cerr != nil {
		return cerr
	}
	return os.NewSyscallError("shutdown", err)
}
