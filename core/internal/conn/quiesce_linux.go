package conn

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// quiesceTime is how long a listener that is about to be closed still takes what clients have begun: a handshake's
// time.
const quiesceTime = 50 * time.Millisecond

// Quiesce makes a listener, which is served on, take no more clients than those that have begun to connect: closing
// it would reset those in its backlog. A client that comes meanwhile is not answered. It tries again after a
// second, and gets to who listens then.
func Quiesce(l net.Listener) {
	raw, err := rawOf(l)
	if err != nil {
		return
	}
	if err = refuseSYN(raw); err != nil { // newer systems want CAP_NET_ADMIN for that
		err = leaveInterfaces(raw)
	}
	if err == nil {
		time.Sleep(quiesceTime)
	}
}

// rawOf is the socket of a listener, also of one that reads PROXY headers.
func rawOf(l net.Listener) (syscall.RawConn, error) {
	if p, ok := l.(*proxyListener); ok {
		l = p.Listener
	}
	if c, ok := l.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// refuseSYN has the system drop what begins a connection to a socket.
func refuseSYN(raw syscall.RawConn) (err error) {
	// Drop segments with SYN and without ACK (RFC 9293 §3.1); filters of TCP sockets begin at the TCP header.
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 13},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0x12},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x02, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0xFFFFFFFF},
	}
	cerr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
	return errors.Join(cerr, err)
}

// nowhere is the index of a network interface that there is not.
const nowhere = 1 << 30

// leaveInterfaces has a socket listen where nothing comes from. What begins a connection is dropped if the system
// chooses it among several at the address, and refused if it is the only one.
func leaveInterfaces(raw syscall.RawConn) (err error) {
	cerr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, nowhere)
	})
	return errors.Join(cerr, err)
}
