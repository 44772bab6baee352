package dnsserver

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/proxyproto"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// ListenPacket opens the UDP socket.
func (s *Server) ListenPacket() (net.PacketConn, error) {
	return reuseport.ListenPacket("udp", strings.TrimPrefix(s.Addr, transport.DNS+"://"))
}

// ServePacket serves queries that come on p until the server is stopped; then it closes p.
func (s *Server) ServePacket(p net.PacketConn) error {
	u := &udpTransport{server: s, conn: s.wrapPacket(p), readEnded: make(chan struct{})}
	for _, cfg := range s.configs {
		if cfg.UDPDecorateWriterFunc != nil {
			u.decorate = cfg.UDPDecorateWriterFunc(s)
		}
	}
	if !s.start(u) {
		return p.Close()
	}
	return u.serve()
}

// wrapPacket makes p understand the PROXY protocol, if a block wants it.
func (s *Server) wrapPacket(p net.PacketConn) net.PacketConn {
	for _, cfg := range s.configs {
		if cfg.ProxyProtoConnPolicy != nil {
			return &proxyproto.PacketConn{
				PacketConn:                    p,
				ConnPolicy:                    cfg.ProxyProtoConnPolicy,
				UDPSessionTrackingTTL:         cfg.ProxyProtoUDPSessionTrackingTTL,
				UDPSessionTrackingMaxSessions: cfg.ProxyProtoUDPSessionTrackingMaxSessions,
			}
		}
	}
	return p
}

// udpTransport serves one UDP socket: one reader, and the workers of the process.
type udpTransport struct {
	server   *Server
	conn     net.PacketConn
	decorate dns.DecorateWriter
	inflight inflight

	stopping   atomic.Bool
	readEnded  chan struct{}
	drainUntil time.Time // the reader's
}

func (u *udpTransport) serve() error {
	defer close(u.readEnded)
	read := u.reader()
	buf := make([]byte, MaxUDPQuery)
	for {
		if u.stopping.Load() && !u.drainOn() {
			return nil
		}
		n, back, err := read(buf)
		switch {
		case err == nil:
			u.take(buf[:n], back)
		case u.stopping.Load() || errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
		default:
			time.Sleep(readErrorPause) // an error of the socket, such as no buffers: it may pass
		}
	}
}

// take gives a datagram to a worker, or drops it if all are at work.
func (u *udpTransport) take(packet []byte, back back) {
	u.inflight.add()
	q := &udpQuery{transport: u, packet: append([]byte(nil), packet...), back: back}
	if !waiting().try(q) {
		u.inflight.done()
		vars.QueriesDropped.WithLabelValues(u.server.Addr, "waiting").Inc()
	}
}

const (
	drainPause     = 5 * time.Millisecond  // the socket's queue is empty if so long nothing comes
	drainTime      = 50 * time.Millisecond // a queue that is filled again and again is left to itself after that
	readErrorPause = time.Millisecond
)

// drainOn makes the next read end soon if the socket's queue is empty. It reports false
// if there was time enough to empty it.
func (u *udpTransport) drainOn() bool {
	now := time.Now()
	if u.drainUntil.IsZero() {
		u.drainUntil = now.Add(drainTime)
	}
	u.conn.SetReadDeadline(now.Add(drainPause))
	return now.Before(u.drainUntil)
}

// back is where a datagram came from, and so where its reply goes.
type back interface {
	remote() net.Addr
	write(b []byte) error
}

// reader is the way to read datagrams from the socket.
func (u *udpTransport) reader() func(buf []byte) (int, back, error) {
	conn, ok := u.conn.(*net.UDPConn)
	if !ok {
		return func(buf []byte) (int, back, error) {
			n, addr, err := u.conn.ReadFrom(buf)
			return n, &packetBack{u.conn, addr}, err
		}
	}
	// On a wildcard socket the reply must come from the address that was asked.
	ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
	ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	return func(buf []byte) (int, back, error) {
		n, session, err := dns.ReadFromSessionUDP(conn, buf)
		return n, &sessionBack{conn, session}, err
	}
}

type packetBack struct {
	conn net.PacketConn
	addr net.Addr
}

func (b *packetBack) write(p []byte) error {
	_, err := b.conn.WriteTo(p, b.addr)
	return err
}

// remote is the client's address; a PROXY header may have told another one than the sender's.
func (b *packetBack) remote() net.Addr {
	if a, ok := b.addr.(interface{ Client() *net.UDPAddr }); ok {
		return a.Client()
	}
	return b.addr
}

type sessionBack struct {
	conn    *net.UDPConn
	session *dns.SessionUDP
}

func (b *sessionBack) remote() net.Addr { return b.session.RemoteAddr() }
func (b *sessionBack) write(p []byte) error {
	_, err := dns.WriteToSessionUDP(b.conn, p, b.session)
	return err
}

// udpQuery is one datagram on its way through a worker, and its outlet.
type udpQuery struct {
	transport *udpTransport
	packet    []byte
	back      back
	writer    dns.Writer // what a decorator made of the way back, nil without one
}

func (q *udpQuery) run() {
	defer q.transport.inflight.done()
	s := q.transport.server
	w := &responder{out: q, network: "udp", remote: q.back.remote(), local: q.transport.conn.LocalAddr(), secrets: s.tsigSecret}
	if q.transport.decorate != nil {
		q.writer = q.transport.decorate(plainWriter{w, q.back})
	}
	packet := q.packet
	q.packet = nil
	s.serveBytes(context.Background(), w, packet)
}

func (q *udpQuery) send(b []byte) error {
	if q.writer != nil {
		_, err := q.writer.Write(b)
		return err
	}
	return q.back.write(b)
}

func (q *udpQuery) Close() error { return nil }
func (q *udpQuery) Hijack()      {}

// plainWriter is what decorators decorate: a writer that sends at once.
type plainWriter struct {
	*responder
	back back
}

func (w plainWriter) Write(b []byte) (int, error) { return len(b), w.back.write(b) }

// stop lets the reader take what is queued, waits for the queries in flight, and closes the socket.
func (u *udpTransport) stop(ctx context.Context) error {
	u.stopping.Store(true)
	u.conn.SetReadDeadline(time.Now()) // wakes the reader
	defer u.conn.Close()
	<-u.readEnded
	select {
	case <-u.inflight.drained():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
