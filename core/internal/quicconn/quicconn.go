// Package quicconn serves the QUIC connections of one UDP socket: it admits them, drains them, and refuses those
// that are too many. What is spoken on a connection is the business of DNS over QUIC (doq) and HTTP/3 (doh).
//
// A Transport is an heirloom: in a reload the next server goes on with its connections, and new ones get its
// configuration. Start at Listen; then Transport.Serve, drain.go for the end, and handover.go for the process after.
package quicconn

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Transport serves the QUIC connections of one UDP socket, each on a goroutine of its own. When a reload puts
// another server into its seat, it goes on with the connections that there are.
type Transport struct {
	service.Seat
	proxied   bool // PROXY headers are read
	packets   net.PacketConn
	read      net.PacketConn // packets, or what reads PROXY headers of it
	admission *conn.Admission
	ids       ids
	codes     Codes
	waiting   chan struct{} // one for each connection that waits for a place, or to be refused
	door      *door
	troubled  log.Seldom // lines about errors of the socket

	stopping  atomic.Bool
	mu        sync.Mutex
	quic      *quic.Transport
	listener  *quic.EarlyListener
	accepting context.CancelFunc // ends the loop of the server that sits there
	arrivals  map[*arrival]struct{}
	conns     map[*Conn]struct{} // those that are admitted
	done      sync.WaitGroup
}

// Codes are the codes with which connections are closed.
type Codes struct {
	None    quic.ApplicationErrorCode // nothing is wrong
	TooMany quic.ApplicationErrorCode // there are too many connections
}

// Conn is one connection.
type Conn struct {
	*quic.Conn
	transport *Transport
	inflight  service.Inflight
	open      atomic.Int64           // see Open
	asked     atomic.Bool            // it has had a query
	ending    atomic.Bool            // it is about to end; see drain
	failed    atomic.Bool            // see Fails
	last      atomic.Int64           // when it had one; see conn.Evictable
	unsent    atomic.Int64           // octets of replies that wait for the client
	tell      atomic.Pointer[func()] // see OnLeave
}

// Windows of QUIC connections: a stream brings one query, so there is no need for more.
const (
	streamWindow = 128 << 10
	connWindow   = 512 << 10

	// maxWaiting is how many connections wait at one time until another one gives way, or they can be told why they
	// are refused.
	maxWaiting = 64
)

// Config is the configuration of a listener for s. Without a limit of streams, library says whether that of the
// library is meant.
func Config(l *service.Limits, idle time.Duration, library bool) *quic.Config {
	streams := int64(l.Streams)
	if streams == 0 && !library {
		streams = math.MaxInt32
	}
	return &quic.Config{
		HandshakeIdleTimeout: l.Handshake,
		InitialPacketSize:    transport.QUICPacket,
		MaxIdleTimeout:       idle, MaxIncomingStreams: streams, Allow0RTT: true,
		InitialStreamReceiveWindow: streamWindow, MaxStreamReceiveWindow: streamWindow,
		InitialConnectionReceiveWindow: streamWindow, MaxConnectionReceiveWindow: connWindow,
	}
}

// Configs is what the library is told: for each connection anew, as another server may sit there then. The Proto of
// a Service that speaks QUIC embeds it.
type Configs struct {
	TLS  *tls.Config
	QUIC *quic.Config
}

func (c *Configs) configs() *Configs { return c }

// configs are those of s.
func configs(s *service.Service) *Configs {
	return s.Proto.(interface{ configs() *Configs }).configs()
}

// Listen begins to serve QUIC on p for s. read is p, or what reads PROXY headers of it.
func Listen(s *service.Service, p, read net.PacketConn, codes Codes) (*Transport, error) {
	t := &Transport{proxied: read != p, packets: p, read: read, codes: codes, waiting: make(chan struct{}, maxWaiting), door: newDoor()}
	t.ids = newIDs()
	t.arrivals, t.conns = map[*arrival]struct{}{}, map[*Conn]struct{}{}
	t.Seat.Sit(s)
	t.admission = conn.NewAdmission(&t.Seat)
	err := t.listen()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		log.Warningf("Packets of QUIC at %s are read one by one: %v", p.LocalAddr(), err)
		t.read = bare(read)
		err = t.listen()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return t, nil
}

// bare is p as one that has no options to set but the lengths of its queues: the library takes no socket whose system
// refuses some of them.
func bare(p net.PacketConn) net.PacketConn {
	type queues interface {
		SetReadBuffer(int) error
		SetWriteBuffer(int) error
	}
	if q, ok := p.(queues); ok {
		return struct {
			net.PacketConn
			queues
		}{p, q}
	}
	return struct{ net.PacketConn }{p}
}

// listen makes the library listen. After an error all is as before. mu is held, or nobody else has t.
func (t *Transport) listen() error {
	k := processKeys()
	library := &quic.Transport{
		Conn: t.read, StatelessResetKey: k.resetAt(t.packets.LocalAddr()), TokenGeneratorKey: &k.token,
		ConnectionIDGenerator: t.ids,
		// Who cannot be answered, as he lies about his address, takes no place. Who comes when nobody comes in any more
		// is asked to come again, too, and is heard by the next server.
		VerifySourceAddress: func(net.Addr) bool { return t.admission.HalfFull() || !t.door.pass() },
		ConnContext:         t.arrive,
	}
	qconf := configs(t.Now()).QUIC.Clone()
	qconf.GetConfigForClient = func(*quic.ClientInfo) (*quic.Config, error) { return t.configFor(memory.Streams(memory.Limit())), nil }
	conf := &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		return conn.ConfigFor(configs(t.Now()).TLS, hello)
	}}
	listener, err := library.ListenEarly(conf, qconf)
	if err == nil {
		t.quic, t.listener = library, listener
	}
	return err
}

// errorPause is how long nothing is heard after an error of the socket.
const errorPause = 100 * time.Millisecond

// relisten listens anew when failed has given up, with all its connections, as the library does for any error of the
// socket, though it may pass. Clients get a stateless reset, and connect again. It reports false if t has ended.
func (t *Transport) relisten(failed *quic.Transport, why error) bool {
	failed.Close()
	time.Sleep(errorPause)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.quic != failed { // the server that sits there now was faster
		return true
	}
	if t.stopping.Load() || t.packets.SetReadDeadline(time.Time{}) != nil {
		return false
	}
	if t.troubled.May() {
		log.Warningf("Connections of QUIC at %s were lost: %v", t.packets.LocalAddr(), why)
	}
	_ = t.listen() // else the listener is still the one that failed, and this is done again
	return true
}

// listening is what reads the socket now, and what accepts connections of that. Who closes either does not hold mu, for
// which its goroutines may wait.
func (t *Transport) listening() (*quic.Transport, *quic.EarlyListener) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.quic, t.listener
}

// minStreams is how many streams each connection may have.
const minStreams = 8

// configFor is the configuration of the next connection of a process that may have so many streams. An eighth of them
// is for it and as many connections as there are, unless a number was asked for: each stream of HTTP/3 has a goroutine
// at once.
func (t *Transport) configFor(all int) *quic.Config {
	s := t.Now()
	c := configs(s).QUIC
	if streams := int64(max(minStreams, all/8/(1+t.admission.Len()))); !s.StreamsSet && streams < c.MaxIncomingStreams {
		c = c.Clone()
		c.MaxIncomingStreams = streams
	}
	return c
}

// Fits reports whether t may go on with s as its server, for which PROXY headers are read or not.
func (t *Transport) Fits(s *service.Service, proxied bool) bool {
	return conn.ClientAuthOf(configs(t.Now()).TLS).Same(conn.ClientAuthOf(configs(s).TLS)) && t.proxied == proxied
}

// Sit implements service.Heirloom.
func (t *Transport) Sit(s *service.Service) {
	t.Seat.Sit(s)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.accepting != nil {
		t.accepting()
	}
}

// Holds implements service.Heirloom: queries are counted.
func (t *Transport) Holds(*service.Service) bool { return false }

// Serve serves each connection with f, until the transport is stopped, or another server sits there.
func (t *Transport) Serve(s *service.Service, f func(*Conn)) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	t.mu.Lock()
	// The next server has sat down already, and its Sit found no loop to end.
	if t.Now() != s {
		cancel()
	}
	t.accepting = cancel
	t.mu.Unlock()
	for {
		library, listener := t.listening()
		accepted, err := listener.Accept(ctx)
		if err != nil {
			if errors.Is(err, quic.ErrServerClosed) || t.stopping.Load() || ctx.Err() != nil {
				return nil
			}
			if t.relisten(library, err) {
				continue
			}
			if t.stopping.Load() {
				return nil
			}
			return err
		}
		c := &Conn{Conn: accepted, transport: t}
		c.last.Store(service.Now())
		c.accepted()
		t.done.Add(1)
		// There is a place, unless others are faster: nothing is waited for then, and the connection is refused.
		if !t.admission.Full() {
			go t.serveConn(c, f, 0, func() {})
			continue
		}
		select {
		case t.waiting <- struct{}{}:
			go t.serveConn(c, f, conn.Patience(), func() { <-t.waiting })
		default:
			accepted.CloseWithError(t.codes.TooMany, tooManyConns)
			t.done.Done()
		}
	}
}

// serveConn serves c when it is admitted, for which it waits so long at most, or refuses it. It calls waited when
// either is done.
func (t *Transport) serveConn(c *Conn, f func(*Conn), wait time.Duration, waited func()) {
	defer t.done.Done()
	slot := t.admission.Enter(wire.AddrOf(c.RemoteAddr()), c, wait)
	if slot == nil {
		t.refuse(c.Conn)
		waited()
		return
	}
	waited()
	defer slot.Leave()
	t.mu.Lock()
	t.conns[c] = struct{}{}
	t.mu.Unlock()
	f(c)
	t.mu.Lock()
	delete(t.conns, c)
	t.mu.Unlock()
}

const tooManyConns = "too many connections"

// refuse closes a connection that is too many. What it is told for a reason can only be told when the handshake is
// complete (RFC 9000 §10.2.3).
func (t *Transport) refuse(c *quic.Conn) {
	select {
	case <-c.HandshakeComplete():
	case <-c.Context().Done():
	}
	c.CloseWithError(t.codes.TooMany, tooManyConns)
}

// IdleSince implements conn.Evictable.
func (c *Conn) IdleSince() (int64, bool) { return c.last.Load(), !c.inflight.Busy() }

// Open counts a stream that brings a query, until Shut: from before it is read until its reply is written. A connection
// that ends waits for it, for a while; one that must give way to another does not.
func (c *Conn) Open() { c.open.Add(1) }
func (c *Conn) Shut() {
	c.last.Store(service.Now())
	c.open.Add(-1)
}

// Occupy counts a query of the connection, until Vacate. Its server counts it by Enter.
func (c *Conn) Occupy() {
	if !c.asked.Load() {
		c.asked.Store(true)
	}
	c.inflight.Add()
}

// Begin is Occupy for a query whose client cannot be told that the server stops, and asks on. It reports false for what
// it asks when the connection is about to end: that is served, but not waited for, and there is nothing to Vacate.
func (c *Conn) Begin() (waited bool) {
	if c.ending.Load() {
		return false
	}
	c.Occupy()
	if c.ending.Load() { // drain may not have waited for it
		c.Vacate()
		return false
	}
	return true
}

// Fails notes that the connection is about to be ended for an error. It reports whether that is the first one: several
// streams may find one at the same time.
func (c *Conn) Fails() (first bool) { return !c.failed.Swap(true) }

// Vacate ends what Occupy or Begin has begun.
func (c *Conn) Vacate() {
	c.last.Store(service.Now())
	c.inflight.Done()
}

// Hold enters n octets of a reply that waits for the client, until Release. It reports false, and enters none, if the
// process holds too many.
func (c *Conn) Hold(n int) bool {
	held := int(c.unsent.Add(int64(n))) - n
	if !unsent.Take(held, n) {
		c.unsent.Add(int64(-n))
		return false
	}
	return true
}

// Release takes out what Hold has entered.
func (c *Conn) Release(n int) {
	c.unsent.Add(int64(-n))
	unsent.Give(n)
}

// Client is the address of the connection's client: a PROXY header may have told another one than that of the sender.
func (c *Conn) Client() net.Addr {
	a := c.RemoteAddr()
	if p, ok := a.(interface{ Client() *net.UDPAddr }); ok {
		return p.Client()
	}
	return a
}

// Enter begins a query with the server that the transport of c works for. It is over when the server's Inflight is
// told so by Done.
func (c *Conn) Enter() *service.Service { return c.transport.Enter() }

// Service is that server.
func (c *Conn) Service() *service.Service { return c.transport.Now() }
