package proxy

import (
	cryptorand "crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strconv"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/udpsockets"
)

// Peer is a server of plain DNS that is one of many: who resolves names from the root meets thousands of them. What
// a Proxy keeps for its one upstream (cookies, connections) is kept here for each; sockets, clock and counters are
// those of the Proxy that made it with NewPeer.
//
// Over UDP each query to a Peer has a port of its own, a random one, which is given back with the exchange (RFC 5452
// §9.2). A Peer that nobody refers to needs no end: idle connections are closed by the
// clock.
//
// Over TCP a Peer is asked by the Proxy that made it. Over UDP any Proxy of NewOpen will do: who asks much has
// several, and waits less for their locks.
type Peer struct {
	maker   *Proxy
	addr    netip.AddrPort
	source  netip.AddrPort // addr as the system tells it of datagrams
	cookies cookies
	streams streamPool // guarded by the lock of the maker's engine
}

// ErrForged means that datagrams with wrong ids came to the port that one query had for itself: somebody guesses. The
// query is best repeated over TCP.
var ErrForged = errors.New("proxy: somebody forges replies")

// maxNearMisses is how many datagrams with a wrong id the port of one query takes.
const maxNearMisses = 2

// NewOpen is a Proxy without an upstream of its own: all its exchanges name a Peer. name is a label of metrics.
func NewOpen(name string) *Proxy {
	p := NewProxy(name, "", transport.DNS)
	p.transport.SetMaxIdleConns(0)
	return p
}

// NewOpenTLS is NewOpen for servers of DNS over TLS. cfg is how they are asked.
func NewOpenTLS(name string, cfg *tls.Config) *Proxy {
	p := NewProxy(name, "", transport.TLS)
	p.SetTLSConfig(cfg)
	p.transport.SetMaxIdleConns(0)
	return p
}

// NewPeer is the server at addr, which the Proxy's exchanges may name.
func (p *Proxy) NewPeer(addr netip.AddrPort) *Peer {
	to := &Peer{maker: p, addr: addr, source: asTold(addr)}
	cryptorand.Read(to.cookies.client[:]) // never fails
	return to
}

// asTold is addr as the system tells it of datagrams: IPv4 as such, and the name of an interface for its number.
func asTold(addr netip.AddrPort) netip.AddrPort {
	a := addr.Addr().Unmap()
	if n, err := strconv.Atoi(a.Zone()); err == nil {
		if i, err := net.InterfaceByIndex(n); err == nil {
			a = a.WithZone(i.Name)
		}
	}
	return netip.AddrPortFrom(a, addr.Port())
}

// OnIgnored has f called with what is no reply to any query: the reason, as in metrics, and how many. It belongs
// before the first query; f must not wait.
func (p *Proxy) OnIgnored(f func(reason string, n int)) { p.onIgnored = f }

// HasCookie reports whether the server has given a cookie: its replies must have one then.
func (to *Peer) HasCookie() bool { return to.cookies.server.Load() != nil }

// Addr is the server's address.
func (to *Peer) Addr() netip.AddrPort { return to.addr }

// cookiesOf is where the cookies of x's server are.
func (p *Proxy) cookiesOf(x *Exchange) *cookies {
	if x.To != nil {
		return &x.To.cookies
	}
	return &p.cookies
}

// streamsOf is the connections to x's server.
func (e *engine) streamsOf(x *Exchange) *streamPool {
	if x.To == nil {
		return &e.streams
	}
	return &x.To.streams
}

// peerBudget bounds the sockets of all queries to peers, within socketBudget.
var peerBudget = budget{limit: int64(min(allSockets, memory.Files()/4))}

// takePeerSocket takes a place for a socket in both budgets, and reports whether there was one.
func takePeerSocket() bool {
	if !peerBudget.take(false) {
		return false
	}
	if !socketBudget.take(false) {
		peerBudget.give()
		return false
	}
	return true
}

func givePeerSocket() {
	peerBudget.give()
	socketBudget.give()
}

// askPeer sends x over UDP, on a socket of its own.
func (e *engine) askPeer(x *Exchange, loop *eventloop.Loop) {
	x.Proto = "udp"
	s, err := e.peerSocket(x, loop)
	if err != nil {
		e.end(x, err)
		return
	}
	e.mu.Lock()
	if e.stopped {
		givePeerSocket()
		e.doomed = append(e.doomed, s)
		e.unlock()
		e.end(x, errStopped)
		return
	}
	now := e.now()
	e.udp.add(s, &e.udp.none)
	e.keepHouse(now)
	s.to, s.answered = x.To, false
	s.pending.add(x, e.random)
	x.on, x.Local = s, s.Addr()
	e.schedule(x, now)
	id, query := x.id, x.Query
	binary.BigEndian.PutUint16(query, id)
	if x.MixCase {
		x.flips = &x.mixed
		x.flips.Mix(query, e.random)
	}
	e.unlock()
	e.sendUDP(s, x, id, query)
}

// peerSocket is a socket for x, on a port that it has not had before. It has its place in the budgets, but is in no
// list yet.
func (e *engine) peerSocket(x *Exchange, loop *eventloop.Loop) (*udpSocket, error) {
	kind := spareKindOf(x, loop)
	if s := e.spares.take(kind); s != nil {
		s.Socket.(udpsockets.Movable).Aim(x.To.addr)
		return s, nil
	}
	if !takePeerSocket() {
		return nil, ErrBusy
	}
	all, err := e.udpSockets()
	if err == nil {
		s := &udpSocket{engine: e, to: x.To, kind: kind}
		if s.Socket, err = all.Open(x.From, x.To.addr, s, loop); err == nil {
			return s, nil
		}
		err = stoppedOr(err)
	}
	givePeerSocket()
	return nil, err
}

// nearMiss notes that a datagram with a wrong id came to s, which is of a Peer. It returns the exchange that ends
// by that, which was taken. mu is held.
func (e *engine) nearMiss(s *udpSocket, now int64) *Exchange {
	if s.to == nil || s.pending.n != 1 {
		return nil
	}
	x := s.pending.all()[0]
	if x.nearMisses++; x.nearMisses < maxNearMisses {
		return nil
	}
	e.take(x, now)
	return x
}

// remember keeps a Peer with connections in mind, so that these are closed. mu is held.
func (e *engine) remember(to *Peer) {
	if to == nil {
		return
	}
	if e.peers == nil {
		e.peers = map[*Peer]struct{}{}
	}
	e.peers[to] = struct{}{}
}

// pools calls f with the connections to each server. mu is held.
func (e *engine) pools(f func(*streamPool)) {
	f(&e.streams)
	for to := range e.peers {
		if f(&to.streams); len(to.streams.conns) == 0 {
			delete(e.peers, to)
		}
	}
}
