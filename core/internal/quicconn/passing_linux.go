package quicconn

import (
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/net/ipv4"
)

const (
	// passTime is how long the next one has to take a packet when passBuffer is full. It is busy then, and the client
	// sends it again.
	passTime = time.Millisecond
	// passBuffer is the octets of packets that wait for it in the system.
	passBuffer = 1 << 20
)

// passing is the way to the transport after.
type passing struct {
	conn       *net.UnixConn
	own        ids
	connecting func(net.Addr) bool // whether the handshake with a client is not over
	b          []byte              // a packet that is written
	rest       []byte              // of it, what is not written yet
	lost       bool
}

// pick passes on those packets that are not for connections of its own. The others are the first n then.
func (p *passing) pick(ms []ipv4.Message) (n int) {
	for i := range ms {
		m := &ms[i]
		if !p.keeps(m) && p.pass(m) {
			continue
		}
		if to := &ms[n]; to != m { // the library knows which buffer is whose
			to.N, to.NN = copy(to.Buffers[0], m.Buffers[0][:m.N]), copy(to.OOB, m.OOB[:m.NN])
			to.Addr, to.Flags = m.Addr, m.Flags
		}
		n++
	}
	return n
}

// keeps reports whether a packet is for a connection of its own. With a token, only who is connecting is known to have
// one.
func (p *passing) keeps(m *ipv4.Message) bool {
	b := m.Buffers[0][:m.N]
	return p.own.made(b) && (!comesAgain(b) || p.connecting(m.Addr))
}

// pass reports false if the transport after cannot be reached. A packet that it is too busy for is dropped.
func (p *passing) pass(m *ipv4.Message) bool {
	from, ok := m.Addr.(*net.UDPAddr)
	if !ok || p.lost {
		return false
	}
	addr, err := from.AddrPort().MarshalBinary()
	if err != nil {
		return false
	}
	p.conn.SetWriteDeadline(time.Now().Add(passTime))
	if !p.write() {
		return !p.lost
	}
	p.b = frame{addr, m.OOB[:m.NN], m.Buffers[0][:m.N]}.append(p.b[:0])
	p.rest = p.b
	p.write()
	return !p.lost
}

// write writes the rest of a packet. It reports false if it has one still.
func (p *passing) write() bool {
	if len(p.rest) == 0 {
		return true
	}
	n, err := p.conn.Write(p.rest)
	p.rest = p.rest[n:]
	p.lost = err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	return err == nil
}
