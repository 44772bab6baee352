package proxy

import (
	"net"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// This file is what an operating system has to offer for UDP; socket_linux.go is the quick way, socket_portable.go the
// one that works everywhere.

// sockets opens UDP sockets to one server each and reads them all, on goroutines of its own, or of loops.
type sockets interface {
	// open makes a socket on a random port of local (of any address if that is not valid), to remote. What
	// comes in is told to the receiver with owner, in loop if that can be. loop is the caller's, nil if it is in none.
	open(local netip.Addr, remote netip.AddrPort, owner *udpSocket, loop *eventloop.Loop) (socket, error)
	// stop ends all reading, and waits for that. Sockets that are still open are closed one by one.
	stop()
}

// socket is one of them. Its methods may be called from any goroutine, also after close.
type socket interface {
	// send sends b, without waiting.
	send(b []byte) error
	// sendAll sends a batch of maxRun at most, or what is left of it, and returns how many it could send. An error
	// is about the next one, which is left out if sendAll is called again.
	sendAll(*datagrams) (int, error)
	// close closes the socket. It does not wait for a receiver that is just being told something.
	close()
	addr() net.Addr
}

// receiver is told what comes in.
type receiver interface {
	// now is the present time, which received wants to know: there may be many datagrams that came at one time.
	now() int64
	// received gets datagrams, which are good until it returns and may be changed; then all is empty. loop is the
	// caller's, nil if it is in none.
	received(s *udpSocket, all *batch, loop *eventloop.Loop, now int64)
	// failed is told that an ICMP message or the like came, about a datagram to an address, which is not valid if the
	// socket knows no other.
	failed(s *udpSocket, about netip.AddrPort, err error)
}

// maxDatagram is how long a datagram can be, in octets.
const maxDatagram = 65535
