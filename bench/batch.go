package main

import (
	"net"

	"golang.org/x/net/ipv4"
)

// batchSize is how many datagrams one system call moves at most.
const batchSize = 32

// packetLen is the size of the buffer of each datagram.
const packetLen = 2048

// batch is a UDP socket with its buffers for many datagrams a system call (one, where
// the system has no such call). One goroutine owns it.
type batch struct {
	pc   *ipv4.PacketConn
	in   []ipv4.Message
	out  []ipv4.Message
	full int // messages of out that wait to be sent
}

func newBatch(conn *net.UDPConn) *batch {
	b := &batch{pc: ipv4.NewPacketConn(conn), in: make([]ipv4.Message, batchSize), out: make([]ipv4.Message, batchSize)}
	for i := range b.in {
		b.in[i].Buffers = [][]byte{make([]byte, packetLen)}
		b.out[i].Buffers = [][]byte{make([]byte, 0, packetLen)}
	}
	return b
}

// read waits for datagrams and returns how many came; received gives each of them.
func (b *batch) read() (int, error) { return b.pc.ReadBatch(b.in, 0) }

// received returns datagram i and its sender, good until the next read.
func (b *batch) received(i int) ([]byte, net.Addr) {
	return b.in[i].Buffers[0][:b.in[i].N], b.in[i].Addr
}

// room says whether another datagram fits before flush.
func (b *batch) room() bool { return b.full < len(b.out) }

// space returns the empty buffer of the next datagram. put sends it.
func (b *batch) space() []byte { return b.out[b.full].Buffers[0][:0] }

// put queues msg, built in what space returned. to is nil on a connected socket.
func (b *batch) put(msg []byte, to net.Addr) {
	b.out[b.full].Buffers[0], b.out[b.full].Addr = msg, to
	b.full++
}

// flush sends all that is queued.
func (b *batch) flush() error {
	for done := 0; done < b.full; {
		n, err := b.pc.WriteBatch(b.out[done:b.full], 0)
		if err != nil {
			b.full = 0
			return err
		}
		done += n
	}
	b.full = 0
	return nil
}
