package quicconn

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
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

// handoverName is the name of the Unix socket by which a process passes on the packets of its socket at an address.
// Only who knows the keys can tell it.
func (k *keys) handoverName(address string, pid int) string {
	h := hmac.New(sha256.New, k.token[:])
	fmt.Fprintf(h, "handover %s %d", address, pid)
	return "@coredns-" + hex.EncodeToString(h.Sum(nil)[:16])
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

var _ handing = (*socket)(nil)

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

// passOn implements handing.
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

// awaitBefore implements handing.
func (s *socket) awaitBefore(ctx context.Context) {
	if h := s.before.Load(); h != nil {
		select {
		case <-h.over:
		case <-ctx.Done():
		}
	}
}
