package dnsserver

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

// Keys of the process: a server that takes over another one's socket knows what that one has handed out. Clients of
// connections that ended with it learn so at once (RFC 9000 §10.3), and addresses stay validated.
var (
	quicResetKey = sync.OnceValue(func() *quic.StatelessResetKey {
		k := new(quic.StatelessResetKey)
		rand.Read(k[:])
		return k
	})
	quicTokenKey = sync.OnceValue(func() *quic.TokenGeneratorKey {
		k := new(quic.TokenGeneratorKey)
		rand.Read(k[:])
		return k
	})
)

// quicTransport serves the QUIC connections of one UDP socket, each on a goroutine of its own.
type quicTransport struct {
	server    *Server
	packets   net.PacketConn
	quic      *quic.Transport
	listener  *quic.EarlyListener
	admission *admission
	codes     quicCodes
	refusals  chan struct{} // one for each connection that is being refused

	stopping atomic.Bool
	mu       sync.Mutex
	conns    map[*quicConn]struct{}
	done     sync.WaitGroup
}

// quicCodes are the codes with which connections are closed.
type quicCodes struct {
	none    quic.ApplicationErrorCode // nothing is wrong
	tooMany quic.ApplicationErrorCode // there are too many connections
}

// quicConn is one connection.
type quicConn struct {
	*quic.Conn
	transport *quicTransport
	inflight  inflight
	last      atomic.Int64 // when it had a query; see admitted
}

// Windows of QUIC connections: a stream brings one query, so there is no need for more.
const (
	quicStreamWindow = 128 << 10
	quicConnWindow   = 512 << 10

	// quicRefusals is how many connections are told why they are refused, at one time.
	quicRefusals = 64
)

// quicConfigOf is the configuration of a listener. Without a limit of streams, library says whether that of the library is meant.
func quicConfigOf(s *Server, library bool) *quic.Config {
	streams := int64(s.limits.streams)
	if streams == 0 && !library {
		streams = math.MaxInt32
	}
	return &quic.Config{
		HandshakeIdleTimeout: s.limits.handshake,
		MaxIdleTimeout:       s.IdleTimeout, MaxIncomingStreams: streams, Allow0RTT: true,
		InitialStreamReceiveWindow: quicStreamWindow, MaxStreamReceiveWindow: quicStreamWindow,
		InitialConnectionReceiveWindow: quicStreamWindow, MaxConnectionReceiveWindow: quicConnWindow,
	}
}

// listenQUIC begins to serve QUIC on p. It returns nil if s was stopped before.
func listenQUIC(s *Server, p net.PacketConn, conf *tls.Config, qconf *quic.Config, codes quicCodes) (*quicTransport, error) {
	t := &quicTransport{
		server: s, packets: p, admission: newAdmission(s), codes: codes, conns: map[*quicConn]struct{}{}, refusals: make(chan struct{}, quicRefusals),
	}
	t.quic = &quic.Transport{
		Conn: s.wrapPacket(p), StatelessResetKey: quicResetKey(), TokenGeneratorKey: quicTokenKey(),
		// Who cannot be answered, as he lies about his address, takes no place.
		VerifySourceAddress: func(net.Addr) bool { return t.admission.crowded() },
	}
	var err error
	if t.listener, err = t.quic.ListenEarly(conf, qconf); err != nil {
		p.Close()
		return nil, err
	}
	return t, nil
}

// serve serves each connection with f, until the transport is stopped.
func (t *quicTransport) serve(f func(*quicConn)) error {
	for {
		conn, err := t.listener.Accept(context.Background())
		if err != nil {
			if errors.Is(err, quic.ErrServerClosed) || t.stopping.Load() {
				return nil
			}
			return err
		}
		c := &quicConn{Conn: conn, transport: t}
		c.last.Store(sinceStart())
		ticket := t.admission.enter(addrOf(conn.RemoteAddr()), c, false)
		if ticket == nil {
			t.refuse(conn)
			continue
		}
		t.mu.Lock()
		t.conns[c] = struct{}{}
		t.done.Add(1)
		t.mu.Unlock()
		go func() {
			defer t.leave(c, ticket)
			f(c)
		}()
	}
}

// refuse closes a connection that is too many. What it is told for a reason can only be told when the handshake is
// complete (RFC 9000 §10.2.3).
func (t *quicTransport) refuse(conn *quic.Conn) {
	const why = "too many connections"
	select {
	case t.refusals <- struct{}{}:
	default:
		conn.CloseWithError(t.codes.tooMany, why)
		return
	}
	t.done.Add(1)
	go func() {
		defer t.done.Done()
		defer func() { <-t.refusals }()
		select {
		case <-conn.HandshakeComplete():
		case <-conn.Context().Done():
		}
		conn.CloseWithError(t.codes.tooMany, why)
	}()
}

func (t *quicTransport) leave(c *quicConn, ticket *ticket) {
	ticket.leave()
	t.mu.Lock()
	delete(t.conns, c)
	t.mu.Unlock()
	t.done.Done()
}

// end takes no more connections, waits until the queries of those that there are are answered, and closes all.
func (t *quicTransport) end(ctx context.Context) error {
	t.stopping.Store(true)
	t.admission.close()
	t.listener.Close()
	time.Sleep(drainTime) // what has come until then is still served
	t.mu.Lock()
	var waits []<-chan struct{}
	for c := range t.conns {
		waits = append(waits, c.inflight.drained())
	}
	t.mu.Unlock()
	var err error
	for _, w := range waits {
		select {
		case <-w:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if len(waits) > 0 {
		time.Sleep(drainTime) // closing throws away what has not been sent
	}
	t.mu.Lock()
	for c := range t.conns {
		c.CloseWithError(t.codes.none, "")
	}
	t.mu.Unlock()
	if err == nil {
		t.done.Wait()
	}
	t.quic.Close()
	t.packets.Close()
	return err
}

func (c *quicConn) idleSince() (int64, bool) { return c.last.Load(), !c.inflight.busy() }
func (c *quicConn) evict()                   { c.CloseWithError(c.transport.codes.none, "idle") }

// begin counts a query of the connection, until end.
func (c *quicConn) begin() { c.inflight.add() }

func (c *quicConn) end() {
	c.last.Store(sinceStart())
	c.inflight.done()
}

// clientOf is the address of a connection's client: a PROXY header may have told another one than that of the sender.
func clientOf(a net.Addr) net.Addr {
	if p, ok := a.(interface{ Client() *net.UDPAddr }); ok {
		return p.Client()
	}
	return a
}
