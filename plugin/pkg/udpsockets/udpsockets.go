package udpsockets

import (
	"net"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// Set opens UDP sockets to one server each and reads them all, on goroutines of its own, or of loops.
type Set interface {
	// Open makes a socket on a random port of local (of any address if that is not valid), to remote. What comes in is
	// told to to, in loop if that can be. loop is the caller's, nil if it is in none. The error of a Set that was
	// stopped is os.ErrClosed.
	Open(local netip.Addr, remote netip.AddrPort, to Receiver, loop *eventloop.Loop) (Socket, error)
	// Stop ends all reading, and waits for that. Sockets that are still open are closed one by one.
	Stop()
}

// Socket is one of them. Its methods may be called from any goroutine, also after Close.
type Socket interface {
	// Send sends b, without waiting.
	Send(b []byte) error
	// SendAll sends a batch of MaxRun at most, or what is left of it, and returns how many it could send. An error
	// is about the next one, which is left out if SendAll is called again.
	SendAll(*Datagrams) (int, error)
	// Close closes the socket. It does not wait for a Receiver that is just being told something.
	Close()
	// Addr is the address that the socket sends from, nil if that is not known: of a Movable.
	Addr() net.Addr
}

// Movable is a socket that can be given another port and another server.
type Movable interface {
	// Aim has it send to remote, from a random port that it has not now.
	Aim(remote netip.AddrPort)
	// Leave gives the port back.
	Leave() error
}

// Receiver is told what comes in on one socket.
type Receiver interface {
	// Moves reports whether the socket is to be Movable, as far as the system can do that. It is asked by Open.
	Moves() bool
	// Waits reports whether anything is awaited on a socket that is Movable.
	Waits() bool
	// Now is the present time, which Received wants to know: there may be many datagrams that came at one time.
	Now() int64
	// Received gets datagrams, which are good until it returns and may be changed; then all is empty. loop is the
	// caller's, nil if it is in none.
	Received(all *Batch, loop *eventloop.Loop, now int64)
	// Failed is told that an ICMP message or the like came, about a datagram to an address, which is not valid if the
	// socket knows no other.
	Failed(about netip.AddrPort, err error)
}

// Batch is datagrams that came on one socket.
type Batch struct {
	Datagrams [][]byte
	// From is who sent them, if the socket is Movable; else it is not valid.
	From netip.AddrPort
	// Kept is what a Receiver keeps with the memory of batches: nil at first.
	Kept any
}

// maxDatagram is how long a datagram can be, in octets.
const maxDatagram = 65535
