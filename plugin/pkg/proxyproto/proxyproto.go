// Package proxyproto reads PROXY protocol headers, version 2, in front of UDP datagrams, so that queries relayed by
// a load balancer are seen as those of their clients.
//
//	client ──▶ proxy ──▶ [header: from client][query] ──ReadFrom──▶ query, *Addr{client, proxy}
//	client ◀── proxy ◀──────────────[reply]──────────◀──WriteTo──── reply, *Addr
//
// The protocol is at https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt; types and policies are those of
// github.com/pires/go-proxyproto, which has the same for TCP. Start at PacketConn; who reads datagrams by himself
// asks its Open.
package proxyproto

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	proxyproto "github.com/pires/go-proxyproto"
)

// defaultMaxSessions is how many sessions are kept if UDPSessionTrackingMaxSessions does not say it.
const defaultMaxSessions = 10240

// PacketConn takes the PROXY protocol header off the datagrams that it reads, and sends replies to the proxy.
//
// The fields must be set before the first use and not be changed then. The methods may be called from any number of
// goroutines at the same time.
type PacketConn struct {
	net.PacketConn

	// ConnPolicy says, by the address of the sender, what a header means: USE and REQUIRE take the client's address
	// from it, IGNORE takes the header off only, REJECT drops datagrams with a header, REQUIRE those without one,
	// SKIP leaves every datagram as it is. If it fails, the datagram is dropped. Nil stands for USE.
	ConnPolicy proxyproto.ConnPolicyFunc

	// ValidateHeader, if not nil, may refuse headers whose address would be used.
	ValidateHeader proxyproto.Validator

	// ReadHeaderTimeout has no effect: the header is in the datagram or is not.
	ReadHeaderTimeout time.Duration

	// UDPSessionTrackingTTL makes a header without anything behind it hold for the following datagrams from the same
	// address and port that have none, until none has come for so long. 0 turns this off, and such a header is
	// worth nothing.
	UDPSessionTrackingTTL time.Duration

	// UDPSessionTrackingMaxSessions is how many such addresses are remembered; then the one that was quiet for the
	// longest time is forgotten. 0 stands for 10240.
	UDPSessionTrackingMaxSessions int

	// Refused, if not nil, is told each header that had no effect, and why.
	Refused func(Reason)

	once     sync.Once // makes sessions
	sessions *sessions // nil if sessions are not tracked
	warnings warnings
}

// Reason is why a header had no effect.
type Reason string

// Reasons for which headers have no effect.
const (
	Ignored  Reason = "ignored"  // the policy takes it off only
	Rejected Reason = "rejected" // the policy drops datagrams with one
	Invalid  Reason = "invalid"  // it cannot be read, or used
)

// scratch holds buffers for whole datagrams: the header must not take room from the caller's buffer.
var scratch = sync.Pool{New: func() any { return new([1 << 16]byte) }}

// ReadFrom reads the next datagram into p, without its header.
//
// addr is an *Addr if the datagram comes from a client by way of a proxy, and then tells both; otherwise it is the
// address that the underlying connection gave. Datagrams that the policy does not let in and those with a broken header
// are dropped with a warning. Datagrams longer than p are cut. The error is the underlying connection's.
func (c *PacketConn) ReadFrom(p []byte) (n int, addr net.Addr, err error) {
	buf := scratch.Get().(*[1 << 16]byte)
	defer scratch.Put(buf)
	for {
		n, peer, err := c.PacketConn.ReadFrom(buf[:])
		if err != nil {
			return copy(p, buf[:n]), peer, err
		}
		payload, from, err := c.open(buf[:n], peer, time.Now())
		switch {
		case err == nil:
			return copy(p, payload), from, nil
		case errors.Is(err, errNothingToRead):
		default:
			c.warnings.dropped(peer, err, time.Now())
		}
	}
}

// WriteTo sends p to addr; if that is an *Addr, to its proxy.
func (c *PacketConn) WriteTo(p []byte, addr net.Addr) (n int, err error) {
	if a, ok := addr.(*Addr); ok {
		addr = a.peer
	}
	return c.PacketConn.WriteTo(p, addr)
}

// SetReadBuffer sets the size of the system's receive buffer, where the underlying connection has one.
func (c *PacketConn) SetReadBuffer(bytes int) error {
	if b, ok := c.PacketConn.(interface{ SetReadBuffer(int) error }); ok {
		return b.SetReadBuffer(bytes)
	}
	return nil
}

// SetWriteBuffer sets the size of the system's send buffer, where the underlying connection has one.
func (c *PacketConn) SetWriteBuffer(bytes int) error {
	if b, ok := c.PacketConn.(interface{ SetWriteBuffer(int) error }); ok {
		return b.SetWriteBuffer(bytes)
	}
	return nil
}

// Open decides about one datagram from peer, for who reads datagrams by himself: what there is to read of it, and
// who is the client; that is peer if no proxy has told another one. It reports false if the datagram is to be
// dropped; that has been logged then, where there was a reason. payload is a part of datagram.
func (c *PacketConn) Open(datagram []byte, peer netip.AddrPort, now time.Time) (payload []byte, client netip.AddrPort, ok bool) {
	addr := net.UDPAddrFromAddrPort(peer)
	payload, client, err := c.decide(datagram, addr, now)
	switch {
	case errors.Is(err, errNothingToRead):
		return nil, client, false
	case err != nil:
		c.warnings.dropped(addr, err, now)
		return nil, client, false
	case !client.IsValid():
		client = peer
	}
	return payload, client, true
}

// open is Open for PacketConn's own reading.
func (c *PacketConn) open(datagram []byte, peer net.Addr, now time.Time) (payload []byte, from net.Addr, err error) {
	payload, client, err := c.decide(datagram, peer, now)
	switch {
	case err != nil:
		return nil, nil, err
	case !client.IsValid():
		return payload, peer, nil
	}
	return payload, newAddr(client, peer), nil
}

// errNothingToRead says that a datagram was understood, but holds nothing for the reader.
var errNothingToRead = errors.New("no payload")

// errNoPayload says that a header cannot be used, as nothing follows it.
var errNoPayload = errors.New("nothing follows the header, and sessions are not tracked")

// decide says what the reader gets of a datagram from peer, and the client if a proxy has told one.
func (c *PacketConn) decide(datagram []byte, peer net.Addr, now time.Time) (payload []byte, client netip.AddrPort, err error) {
	policy, err := c.policy(peer)
	if err != nil {
		return nil, client, err
	}
	if policy == proxyproto.SKIP {
		return datagram, client, nil
	}
	h, payload, err := parseHeader(datagram)
	switch {
	case errors.Is(err, proxyproto.ErrNoProxyProtocol):
		return c.decideBare(datagram, peer, policy, now)
	case err != nil:
		c.refused(Invalid)
		return nil, client, err
	case policy == proxyproto.REJECT:
		c.refused(Rejected)
		return nil, client, proxyproto.ErrSuperfluousProxyHeader
	case policy == proxyproto.IGNORE:
		c.refused(Ignored)
	default:
		if err := c.validate(datagram); err != nil {
			c.refused(Invalid)
			return nil, client, err
		}
		if h.relayed {
			return c.decideRelayed(h, payload, peer, now)
		}
	}
	if len(payload) == 0 {
		return nil, client, errNothingToRead
	}
	return payload, client, nil
}

func (c *PacketConn) refused(why Reason) {
	if c.Refused != nil {
		c.Refused(why)
	}
}

// decideRelayed is decide for a datagram whose header names the client.
func (c *PacketConn) decideRelayed(h header, payload []byte, peer net.Addr, now time.Time) ([]byte, netip.AddrPort, error) {
	if len(payload) > 0 {
		return payload, h.client, nil
	}
	key, ok := peer.(*net.UDPAddr)
	sessions := c.tracked()
	if !ok || sessions == nil {
		c.refused(Invalid)
		return nil, netip.AddrPort{}, errNoPayload
	}
	sessions.begin(key.AddrPort(), h.client, now)
	return nil, netip.AddrPort{}, errNothingToRead
}

// decideBare is decide for a datagram without a header.
func (c *PacketConn) decideBare(datagram []byte, peer net.Addr, policy proxyproto.Policy, now time.Time) (payload []byte, client netip.AddrPort, err error) {
	if policy == proxyproto.USE || policy == proxyproto.REQUIRE {
		if key, ok := peer.(*net.UDPAddr); ok {
			if client, ok := c.tracked().client(key.AddrPort(), now); ok {
				return datagram, client, nil
			}
		}
	}
	if policy == proxyproto.REQUIRE {
		return nil, client, proxyproto.ErrNoProxyProtocol
	}
	return datagram, client, nil
}

// policy asks ConnPolicy about peer.
func (c *PacketConn) policy(peer net.Addr) (proxyproto.Policy, error) {
	if c.ConnPolicy == nil {
		return proxyproto.USE, nil
	}
	return c.ConnPolicy(proxyproto.ConnPolicyOptions{Upstream: peer, Downstream: c.LocalAddr()})
}

// validate shows the header of datagram to ValidateHeader, in the form that it understands.
func (c *PacketConn) validate(datagram []byte) error {
	if c.ValidateHeader == nil {
		return nil
	}
	h, err := proxyproto.Read(bufio.NewReader(bytes.NewReader(datagram)))
	if err != nil {
		return err
	}
	return c.ValidateHeader(h)
}

// GoOn has c go on with what from remembers, of which it takes the place; both may use it then. It does nothing if they
// track sessions differently, or from is nil. It is called before the first use.
func (c *PacketConn) GoOn(from *PacketConn) {
	if from == nil || from.UDPSessionTrackingTTL != c.UDPSessionTrackingTTL ||
		from.UDPSessionTrackingMaxSessions != c.UDPSessionTrackingMaxSessions {
		return
	}
	c.once.Do(func() { c.sessions = from.tracked() })
}

// tracked returns the table of sessions, nil if they are not tracked.
func (c *PacketConn) tracked() *sessions {
	c.once.Do(func() {
		if c.UDPSessionTrackingTTL <= 0 {
			return
		}
		limit := c.UDPSessionTrackingMaxSessions
		if limit <= 0 {
			limit = defaultMaxSessions
		}
		c.sessions = newSessions(limit, c.UDPSessionTrackingTTL)
	})
	return c.sessions
}
