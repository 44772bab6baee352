package quicconn

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

const (
	// handoverTime is how long a transport that has begun to pass on packets is waited for: longer than it has for its
	// queries.
	handoverTime = 6 * time.Second
	// passTime is how long the next one has to take a packet when passBuffer is full. It is busy then, and the client
	// sends it again.
	passTime = time.Millisecond
	// passBuffer is the octets of packets that wait for it in the system.
	passBuffer = 1 << 20
	// maxPassed is how many packets wait to be read.
	maxPassed = 256
)

// expected has the handovers that servers have not taken yet, by their addresses.
var expected sync.Map // string to *net.UnixListener

// ExpectFrom opens the handover of a process for the server at an address: of the process before, before that is told
// that this one serves, or of this process, before the server before is stopped.
func ExpectFrom(pid int, address string) {
	l, err := net.ListenUnix("unix", handoverAt(address, pid))
	if err == nil {
		expected.Store(address, l)
	}
}

func handoverAt(address string, pid int) *net.UnixAddr {
	k := processKeys()
	return &net.UnixAddr{Name: k.handoverName(address, pid), Net: "unix"}
}

// socket is a UDP socket that another transport reads before this one, or after it.
type socket struct {
	packets
	address string
	before  atomic.Pointer[handedOn] // what the transport before passes on, nil when this one reads the socket
	after   atomic.Pointer[passing]  // the way to the transport after, nil if there is none
	looks   chan struct{}            // has something when whoever waits for before is to look at the socket's deadline
	closed  chan struct{}
	closing sync.Once
}

// packets is what the library wants to know of a socket, and so what it gets.
type packets interface {
	quic.OOBCapablePacketConn
	SetWriteBuffer(int) error
	ReadBatch([]ipv4.Message, int) (int, error)
}

// Packets is p as a socket of the server at an address whose packets can be passed on. passed reports whether it has
// those that the transport before passes on, as ExpectFrom has it: it may be read at once then, else when nobody else
// reads the socket, which gone tells. A transport that has begun to pass on is waited for for longer.
func Packets(p net.PacketConn, address string, gone <-chan struct{}) (_ net.PacketConn, passed bool) {
	raw, ok := p.(packets)
	if !ok {
		return p, false
	}
	s := &socket{packets: raw, address: address, looks: make(chan struct{}, 1), closed: make(chan struct{})}
	l, passed := expected.LoadAndDelete(address)
	if passed {
		h := &handedOn{packets: make(chan frame, maxPassed), over: make(chan struct{})}
		s.before.Store(h)
		h.awaited.Store(l.(*net.UnixListener).Addr().(*net.UnixAddr))
		go h.run(l.(*net.UnixListener), gone, s.closed)
	}
	return s, passed
}

// ReadBatch reads what is for this process.
func (s *socket) ReadBatch(ms []ipv4.Message, flags int) (n int, err error) {
	for n == 0 && err == nil {
		if h := s.before.Load(); h != nil {
			n, err = s.readPassed(h, ms, flags)
		} else {
			n, err = s.packets.ReadBatch(ms, flags)
		}
		if after := s.after.Load(); after != nil {
			n = after.pick(ms[:n])
		}
	}
	return n, err
}

// readPassed is ReadBatch while the transport before reads the socket.
func (s *socket) readPassed(h *handedOn, ms []ipv4.Message, flags int) (int, error) {
	select {
	case f, more := <-h.packets:
		if more {
			return f.into(&ms[0]), nil
		}
		s.before.Store(nil)
		return 0, nil
	case <-s.closed:
		return 0, net.ErrClosed
	case <-s.looks:
		return s.packets.ReadBatch(ms, flags)
	}
}

// ReadFrom implements net.PacketConn, for a library that is not told of ReadBatch.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	ms := []ipv4.Message{{Buffers: [][]byte{b}}}
	if _, err := s.ReadBatch(ms, 0); err != nil {
		return 0, nil, err
	}
	return ms[0].N, ms[0].Addr, nil
}

// SetReadDeadline implements net.PacketConn.
func (s *socket) SetReadDeadline(t time.Time) error {
	select {
	case <-s.looks:
	default:
	}
	err := s.packets.SetReadDeadline(t)
	if !t.IsZero() {
		select {
		case s.looks <- struct{}{}:
		default:
		}
	}
	return err
}

// Close implements net.PacketConn. The transport after reads the socket from then on.
func (s *socket) Close() error {
	s.closing.Do(func() { close(s.closed) })
	err := s.packets.Close()
	if after := s.after.Load(); after != nil {
		after.conn.Close()
	}
	return err
}

// handedOn is what another transport passes on.
type handedOn struct {
	packets chan frame
	over    chan struct{}                // closed when that is all
	awaited atomic.Pointer[net.UnixAddr] // where it is listened for; nil when it has come, or will not
}

// run takes what the transport before passes on, until it closes the handover, or has gone without one. closed ends it,
// too.
func (h *handedOn) run(l *net.UnixListener, gone, closed <-chan struct{}) {
	defer close(h.over)
	defer close(h.packets)
	accepted := make(chan struct{})
	go func() {
		defer l.Close()
		select {
		case <-accepted:
		case <-gone:
		case <-closed:
		}
	}()
	c := accept(l)
	h.awaited.Store(nil)
	close(accepted)
	if c == nil {
		return
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(handoverTime))
	h.take(bufio.NewReaderSize(c, 1<<16), closed)
}

// accept is the connection of a process of the same user, nil if l is closed before one comes.
func accept(l *net.UnixListener) *net.UnixConn {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil
		}
		if ofThisUser(c) {
			return c
		}
		c.Close()
	}
}

// take reads packets until there are no more.
func (h *handedOn) take(r io.Reader, closed <-chan struct{}) {
	var header [frameHeader]byte
	for {
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return
		}
		from, oob, packet := lengths(header[:])
		b := make([]byte, from+oob+packet)
		if _, err := io.ReadFull(r, b); err != nil {
			return
		}
		select {
		case h.packets <- frame{b[:from], b[from:][:oob], b[from+oob:]}:
		case <-closed:
			return
		}
	}
}

// into puts the packet into m. It reports 1 if that has come about, else 0.
func (f frame) into(m *ipv4.Message) int {
	var from netip.AddrPort
	if from.UnmarshalBinary(f.from) != nil {
		return 0
	}
	m.N, m.NN, m.Flags = copy(m.Buffers[0], f.packet), copy(m.OOB, f.oob), 0
	m.Addr = net.UDPAddrFromAddrPort(from)
	return 1
}

// thisUser is the user of the process. Only tests change it.
var thisUser = os.Geteuid

// ofThisUser reports whether the process at the other end is of the same user.
func ofThisUser(c *net.UnixConn) (same bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		who, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		same = err == nil && int(who.Uid) == thisUser()
	})
	return same
}

// passing is the way to the transport after.
type passing struct {
	conn       *net.UnixConn
	own        ids
	connecting func(net.Addr) bool // whether the handshake with a client is not over
	b          []byte              // a packet that is written
	rest       []byte              // of it, what is not written yet
	lost       bool
}

// passOn has packets that are not for connections with ids of own passed on from now on. connecting reports whether the
// handshake with a client is not over. It reports false if there is no transport after.
func (s *socket) passOn(own ids, connecting func(client net.Addr) bool) bool {
	at := handoverAt(s.address, os.Getpid())
	if h := s.before.Load(); h != nil {
		if own := h.awaited.Load(); own != nil && own.Name == at.Name {
			return false // it would pass them on to itself
		}
	}
	c, err := net.DialUnix("unix", nil, at)
	if err != nil {
		return false
	}
	if !ofThisUser(c) { // others see the name while it is in use, and a later reload has the same
		c.Close()
		return false
	}
	c.SetWriteBuffer(passBuffer)
	s.after.Store(&passing{conn: c, own: own, connecting: connecting})
	return true
}

// awaitBefore waits until the transport before reads the socket no more, or ctx is over.
func (s *socket) awaitBefore(ctx context.Context) {
	if h := s.before.Load(); h != nil {
		select {
		case <-h.over:
		case <-ctx.Done():
		}
	}
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

// passes reports whether packets are passed on.
func (s *socket) passes() bool { return s.after.Load() != nil }
