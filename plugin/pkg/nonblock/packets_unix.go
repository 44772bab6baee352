//go:build unix

package nonblock

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A process that is begun by SIGUSR2 gets copies of the sockets, and package net makes those block as they are handed
// on. Whether a socket blocks belongs to what is copied: the sockets of this process block, too, until the other one
// has begun, or for good if it cannot begin. Who then reads more than there is waits in the system, which neither a
// deadline nor the end of the socket ends. A batch waits until it is full.

// Packets is p as one that does not block when it is read, if it is a UDP socket: by ReadFrom, by SyscallConn, and on
// Linux by ReadBatch. Other reads are as they were.
func Packets(p net.PacketConn) net.PacketConn {
	c, ok := p.(*net.UDPConn)
	if !ok {
		return p
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return p
	}
	return &packets{UDPConn: c, keep: Keeper(c), batches: batches{raw: raw}}
}

type packets struct {
	*net.UDPConn
	keep func()
	batches
	mayRefuse atomic.Int32 // datagrams, until that is an error
}

func (p *packets) SyscallConn() (syscall.RawConn, error) { return rawPackets{p.raw}, nil }

func (p *packets) ReadFrom(b []byte) (int, net.Addr, error) {
	p.keep()
	return p.UDPConn.ReadFrom(b)
}

// rawPackets looks before each call of the system, for the socket may have been made to block while the poller waited.
type rawPackets struct{ syscall.RawConn }

func (r rawPackets) Read(f func(uintptr) bool) error {
	return r.RawConn.Read(func(fd uintptr) bool {
		unblock(fd)
		return f(fd)
	})
}

func (r rawPackets) Write(f func(uintptr) bool) error {
	return r.RawConn.Write(func(fd uintptr) bool {
		unblock(fd)
		return f(fd)
	})
}

// Keeper is what to call before c, or what reads from it, is read: the socket does not block then.
func Keeper(c any) (keep func()) {
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return func() { raw.Control(unblock) }
		}
	}
	return func() {}
}

// unblock makes a socket not block. That it does not already is the rule, and asking is cheaper than setting.
func unblock(fd uintptr) {
	if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err == nil && flags&unix.O_NONBLOCK == 0 {
		unix.FcntlInt(fd, unix.F_SETFL, flags|unix.O_NONBLOCK)
	}
}

// maxRefused is how many datagrams in a row the system may refuse to send until that is an error.
const maxRefused = 3

// WriteMsgUDP sends b. One that a firewall of this machine drops, or for which the system has no memory, is as good as
// lost on the way: QUIC sends it again, but for an error ends the connection, and all queries on it. Where nothing was
// ever sent, or nothing is any more, it is an error.
func (p *packets) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = p.UDPConn.WriteMsgUDP(b, oob, to)
	switch left := p.mayRefuse.Load(); {
	case err == nil && left != maxRefused:
		p.mayRefuse.Store(maxRefused)
	case left > 0 && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENOMEM)):
		p.mayRefuse.Store(left - 1) // who sends beside may count it, too
		return len(b), len(oob), nil
	}
	return n, oobn, err
}
