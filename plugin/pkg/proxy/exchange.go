package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Exchange is one query to one upstream, and what came of it.
//
// Its owner fills in the first part and gives it to Begin. From then on the exchange and the octets of
// Query belong to the Proxy, until it calls Owner.EndExchange: once, whatever happens. Then the exchange may be used
// for another query. An Exchange is best a field of what its owner keeps for the query.
type Exchange struct {
	Query    []byte        // a packed query with one question, uncompressed; its id is overwritten
	Stream   bool          // ask over TCP, if the upstream is one of plain DNS
	Final    bool          // no other upstream is left: an earlier handshake of QUIC may end without it
	Cookie   bool          // show the cookie of an upstream of plain DNS; Query has an OPT record without one
	Timeout  time.Duration // for a connection, and again for the reply; 0 is the Proxy's read timeout
	Deadline time.Time     // for all of it; zero is none
	Owner    Ender
	GivesWay eventloop.Place // that are free when it is ended with ErrGaveWay, as it may be; 0: it may not
	Since    time.Time       // when the query began that it is for; zero: with x

	// For a Proxy of NewOpen.
	To      *Peer      // whom to ask
	From    netip.Addr // the address to ask from, any if it is not valid
	MixCase bool       // over UDP, with letters of random case, which the reply must repeat

	// What came of it, for EndExchange. With an error only Proto and, perhaps, Local are set beside it.
	Reply []byte // the reply, with another id than Query's; good until EndExchange returns
	Facts replies.Facts
	Err   error
	Local net.Addr        // where the query was sent from; nil over UDP to a Peer
	Proto string          // "udp" or "tcp", for what stands upon these, too
	RTT   time.Duration   // from when the query was sent, on an open socket or connection, to the reply
	Loop  *eventloop.Loop // in which EndExchange is called, nil if in none
	// Doubted is how many replies over UDP were ignored which had the id and the question, but other letters, or a
	// wrong cookie. A server that does not repeat letters sends one, a forger many.
	Doubted int
	Folded  bool // one of these had other letters

	check bool // it asks whether the upstream is well: any reply will do, and is none that is counted

	// The rest belongs to the engine, and is guarded by its lock while the exchange is under way.
	proxy      *Proxy  // that was asked; set by Begin
	engine     *engine // that carries it; set by Begin
	on         carrier // what carries it; nil if nothing does
	id         uint16
	batch      uint32 // of queries that went together with it over UDP; 0 if it went alone
	retries    uint8
	fresh      int64        // it goes out on a connection of HTTP that began later
	returned   uint8        // by connections of HTTP that did not take it
	stream     *http2Stream // that it has there; nil if none
	nearMisses uint8        // datagrams with a wrong id that came to the port of x alone
	reused     bool         // the connection was open before
	begun      int64        // in the engine's time
	since      int64        // what Since says
	sent       int64        // when a carrier took it, or was opened for it
	deadline   int64
	chained    *Exchange // in an idTable
	links                // in the wheel
	giverLinks
	cancel context.CancelCauseFunc
	flips  *replies.Flips // what Query has in other letters than it had; nil if nothing
	mixed  replies.Flips  // what flips points to, for a Peer
	shown  *shown         // the query with cookies that is sent in place of Query; nil if Query is
}

// Ender is told the end of an exchange.
//
// EndExchange runs on the goroutine that reads for many, or within Begin: it must not wait, nor call Stop. Begin it
// may call, for x as well as for others.
type Ender interface {
	EndExchange(x *Exchange)
}

// Waiter is an Ender that goes on when nobody waits for it any more: then its exchanges do not give way, as no place
// would be free. Waits is called with a lock held; once it is false it stays so.
type Waiter interface{ Waits() bool }

// carrier is a socket, connection or client that exchanges are under way on. Its methods are called with the
// engine's lock held.
type carrier interface {
	// late is the error of x, whose time is over.
	late(x *Exchange) error
	// drop forgets x.
	drop(x *Exchange, now int64)
}

// Begin asks what x says and returns; the end is told to x.Owner, perhaps before Begin returns.
//
// A reply counts only if it has the id of the query and its question, and can be unpacked: over UDP all else is counted
// and ignored until the time is over, since anybody can send it (RFC 5452 §9.1). A connection that the upstream
// closed under a query is tried anew without a word.
//
// Errors are those of package net (timeouts are os.ErrDeadlineExceeded), of crypto/tls, and those of this package.
func (p *Proxy) Begin(x *Exchange) { p.BeginIn(x, nil) }

// BeginIn is Begin for a caller who is in a loop: what goes out over UDP does so when its batch is over. loop may
// be nil.
func (p *Proxy) BeginIn(x *Exchange, loop *eventloop.Loop) {
	e := p.engineOf(x)
	x.proxy, x.engine = p, e
	x.Reply, x.Facts, x.Err, x.Local, x.Proto, x.RTT, x.Loop = nil, replies.Facts{}, nil, nil, "", 0, nil
	x.fresh, x.returned, x.stream = 0, 0, nil
	x.on, x.batch, x.retries, x.reused, x.links, x.chained, x.cancel = nil, 0, 0, false, links{}, nil, nil
	if x.Timeout == 0 {
		x.Timeout = time.Duration(p.readTimeout.Load())
	}
	x.shown, x.flips, x.Doubted, x.Folded, x.nearMisses = nil, nil, 0, false, 0
	x.begun = e.now()
	x.since = min(e.time(x.Since), x.begun)
	x.deadline = e.time(x.Deadline)
	if !asks(x.Query) {
		e.end(x, ErrInvalidRequest)
		return
	}
	if x.Cookie && p.protocol == transport.DNS && !p.secured() {
		p.cookiesOf(x).show(x)
	}
	switch p.protocol {
	case transport.TLS:
		e.askStream(x, 0)
	case transport.DNS:
		if x.Stream || p.secured() {
			e.askStream(x, 0)
		} else if x.To != nil {
			e.askPeer(x, loop)
		} else {
			e.askUDP(x, loop, x.begun)
		}
	case transport.HTTPS:
		if p.byLibrary() {
			e.askByWorker(x)
		} else {
			e.askHTTP(x)
		}
	case transport.HTTPS3, transport.QUIC:
		e.askByWorker(x)
	default:
		e.end(x, errors.New("transport "+p.protocol+" not supported to proxy"))
	}
}

// asks reports whether b is a message with one question, as matching replies needs it.
func asks(b []byte) bool {
	if len(b) < wire.HeaderLen || len(b) > wire.MaxMessage || binary.BigEndian.Uint16(b[4:]) != 1 {
		return false
	}
	n := wire.NameLen(b[wire.HeaderLen:])
	return n != 0 && len(b) >= wire.HeaderLen+n+4
}

// Cancel ends x soon, with cause as its error, unless it ends otherwise before. Owner is told as ever. Only who
// began x may call it, and only while it has not taken note of the end. x names no Peer: such an exchange may go on in
// another engine, see refusedCookie.
func (p *Proxy) Cancel(x *Exchange, cause error) {
	e := x.engine
	e.mu.Lock()
	if x.cancel != nil { // the HTTP client ends it
		x.cancel(cause)
		e.unlock()
		return
	}
	under := x.on != nil
	if under {
		e.take(x, e.now())
	}
	e.unlock()
	if under {
		e.end(x, cause)
	}
}
