package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// portableSocket is a socket whose batches are of one packet. It takes each net.PacketConn.
type portableSocket struct {
	conn net.PacketConn
	udp  *net.UDPConn // conn, if it is one: then replies leave from the address that was asked
	own  net.Addr
	keep func() // has the socket not block when it is read

	buf, scratch []byte
	n            int
	from         returnPath
	out          []byte // the reply, nil if there is none
}

// drainPause is how long nothing comes from a socket whose queue is empty.
const drainPause = 5 * time.Millisecond

func newPortableSocket(conn net.PacketConn) *portableSocket {
	s := &portableSocket{conn: conn, own: conn.LocalAddr(), keep: nonblock.Keeper(conn), buf: make([]byte, MaxQuery), scratch: make([]byte, 0, replySpace)}
	if s.udp, _ = conn.(*net.UDPConn); s.udp != nil {
		// Some systems have only one of them, others none; then the kernel chooses the reply's source.
		_ = ipv4.NewPacketConn(s.udp).SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
		_ = ipv6.NewPacketConn(s.udp).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	}
	return s
}

// receive implements batchSocket, for a batch of one.
func (s *portableSocket) receive(wait bool) (int, error) {
	if !wait {
		s.conn.SetReadDeadline(time.Now().Add(drainPause))
	}
	s.keep()
	var err error
	if s.udp != nil {
		var session *dns.SessionUDP
		s.n, session, err = dns.ReadFromSessionUDP(s.udp, s.buf)
		s.from = &sessionPath{s.udp, session, s.own}
	} else {
		var addr net.Addr
		s.n, addr, err = s.conn.ReadFrom(s.buf)
		s.from = &packetPath{s.conn, addr}
	}
	switch {
	case err == nil:
		return 1, nil
	case !wait && errors.Is(err, os.ErrDeadlineExceeded):
		return 0, nil
	}
	return 0, err
}

func (s *portableSocket) packet(int) []byte { return s.buf[:s.n] }

func (s *portableSocket) peer(int) (client, local netip.AddrPort) {
	p := wire.PeerOf(s.from.remote(nil), s.from.local(nil))
	return p.Client, p.Local
}

func (s *portableSocket) space() []byte                     { return s.scratch }
func (s *portableSocket) answer(_ int, b []byte)            { s.out = b }
func (s *portableSocket) path(int, *pathScratch) returnPath { return s.from }

func (s *portableSocket) send() {
	if s.out != nil {
		s.from.write(s.out)
		s.out = nil
	}
}

// A batch of one has nothing to gather, no group to leave, and no upstreams to read.

func (s *portableSocket) leave()                         {}
func (s *portableSocket) served(int, int, time.Time)     {}
func (s *portableSocket) hold()                          {}
func (s *portableSocket) sendHeld()                      {}
func (s *portableSocket) watchUpstreams(*eventloop.Loop) {}
func (s *portableSocket) endUpstreams()                  {}
func (s *portableSocket) readNoMore()                    {}

func (s *portableSocket) wake()        { s.conn.SetReadDeadline(time.Now()) }
func (s *portableSocket) close() error { return s.conn.Close() }

// packetPath is the way back on a socket of any kind.
type packetPath struct {
	conn net.PacketConn
	addr net.Addr
}

func (b *packetPath) write(p []byte) error {
	_, err := b.conn.WriteTo(p, b.addr)
	return err
}

// remote is the client's address; a PROXY header may have told another one than the sender's.
func (b *packetPath) remote(*wire.AddrScratch) net.Addr {
	if a, ok := b.addr.(interface{ Client() *net.UDPAddr }); ok {
		return a.Client()
	}
	return b.addr
}

func (b *packetPath) local(*wire.AddrScratch) net.Addr   { return b.conn.LocalAddr() }
func (b *packetPath) queue([]byte, *eventloop.Loop) bool { return false }
func (b *packetPath) later([]byte) bool                  { return false }
func (b *packetPath) flush()                             {}

// sessionPath is the way back on a UDP socket: from the address that was asked.
type sessionPath struct {
	conn    *net.UDPConn
	session *dns.SessionUDP
	own     net.Addr
}

func (b *sessionPath) remote(*wire.AddrScratch) net.Addr  { return b.session.RemoteAddr() }
func (b *sessionPath) local(*wire.AddrScratch) net.Addr   { return b.own }
func (b *sessionPath) queue([]byte, *eventloop.Loop) bool { return false }
func (b *sessionPath) later([]byte) bool                  { return false }
func (b *sessionPath) flush()                             {}
func (b *sessionPath) write(p []byte) error {
	_, err := dns.WriteToSessionUDP(b.conn, p, b.session)
	return err
}
