package udp

import (
	"net"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// batchSocket is a UDP socket that is read and written in batches, by one goroutine.
type batchSocket interface {
	// receive waits for packets and returns how many came; they stay until the next call. Without wait it
	// returns 0 when none is queued.
	receive(wait bool) (int, error)
	// packet is packet i of the batch.
	packet(i int) []byte
	// peer is where packet i came from and which of our addresses it was sent to.
	peer(i int) (client, local netip.AddrPort)
	// space is a buffer for the next reply, from its begin to its capacity.
	space() []byte
	// answer puts b into the batch that goes out, as the reply to packet i; send sends that batch.
	answer(i int, b []byte)
	send()
	// path is the way back to the sender of packet i, for a reply that comes later. Any goroutine may use it. It
	// may lie in s.
	path(i int, s *pathScratch) returnPath
	// served tells that a batch of n packets is over, of which handed went to workers, and what time it was when it
	// began.
	served(n, handed int, now time.Time)
	// hold makes replies that are written by anybody wait until sendHeld.
	hold()
	sendHeld()
	// watchUpstreams has receive read what is watched in loop, too, until that is ended by endUpstreams.
	watchUpstreams(loop *eventloop.Loop)
	endUpstreams()
	// readNoMore tells that the last batch was read. Others may read the same socket on.
	readNoMore()
	// leave makes the kernel give datagrams to other sockets of the address, if there are any. What is queued can
	// still be read.
	leave()
	// wake makes a receive that waits return. Any goroutine may call it.
	wake()
	close() error
}

// returnPath is where a datagram came from, and so where its reply goes.
type returnPath interface {
	// remote and local may lie in s.
	remote(s *wire.AddrScratch) net.Addr
	local(s *wire.AddrScratch) net.Addr
	// write sends b, and may wait until the socket takes it.
	write(b []byte) error
	// later sends b at the next flush, or in a moment, and reports whether it can do that; if not, write does it. b
	// is not kept.
	later(b []byte) bool
	flush()
	// queue sends b when the batch of loop is over, and reports whether it can do that; if not, write does it. b is
	// not kept.
	queue(b []byte, loop *eventloop.Loop) bool
}

// proxiedPath is the way back by way of a proxy.
type proxiedPath struct {
	returnPath
	client net.Addr
}

func (p *proxiedPath) remote(*wire.AddrScratch) net.Addr { return p.client }
