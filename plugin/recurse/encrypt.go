package recurse

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// This file asks servers over TLS that can be asked so (RFC 9539), where the operator wants that. Nobody vouches for
// them: it keeps names from who listens, not from who takes a server's place. A server that is met for the first time
// is asked in the clear, as ever, and beside that over TLS; what comes of that is remembered. Nothing fails for the
// sake of it: what goes wrong over TLS is asked again in the clear.

// Times of RFC 9539 §4.3: how long a success and a failure are remembered, and how long a probe may take.
const (
	secureFor   = 3 * 24 * 3600 * store.Second // persistence
	insecureFor = 24 * 3600 * store.Second     // damping
	probeTime   = 4 * time.Second
	mostProbes  = 100 // at a time
)

const dotPort = 853

// encryption is what a resolver that asks over TLS has for that; the zero value is for one that does not.
type encryption struct {
	proxy  *proxy.Proxy
	port   uint16
	probes atomic.Int64
}

// begin has servers be probed.
func (e *encryption) begin() {
	e.port = dotPort
	e.proxy = proxy.NewOpenTLS(pluginName, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, NextProtos: []string{"dot"}}) //nolint:gosec // see above
}

func (e *encryption) stop() {
	if e.proxy != nil {
		e.proxy.Stop()
	}
}

// tlsSide is what is known of a server over TLS.
type tlsSide struct {
	to     *proxy.Peer
	misses atomic.Int32 // one after the other, though it is connected

	mu      sync.Mutex
	good    bool
	until   store.Time // that holds until then
	probing bool
}

func (e *encryption) side(addr netip.Addr) tlsSide {
	if e.proxy == nil {
		return tlsSide{}
	}
	return tlsSide{to: e.proxy.NewPeer(netip.AddrPortFrom(addr, e.port))}
}

// secures reports whether f's server is asked over TLS. If that is not known, a probe begins.
func (r *resolver) secures(f *flight, p *peer) bool {
	if r.encryption.proxy == nil {
		return false
	}
	s, now := &p.secure, r.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case now < s.until && s.until-now <= secureFor:
		return s.good
	case s.probing:
		return false
	case r.encryption.probes.Add(1) > mostProbes:
		r.encryption.probes.Add(-1)
		return false
	}
	s.probing = true
	begun := r.probeFor(f, s) // now: the flight may be over, and serve another exchange, before the goroutine runs
	go r.encryption.proxy.Begin(&begun.x)
	return false
}

// learned notes whether the server can be asked over TLS.
func (s *tlsSide) learned(good bool, now store.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.misses.Store(0)
	s.good, s.probing, s.until = good, false, now+insecureFor
	if good {
		s.until = now + secureFor
	}
}

// probe is an exchange over TLS of which nobody waits for the reply.
type probe struct {
	*resolver
	side *tlsSide
	x    proxy.Exchange
}

// probeFor asks over TLS what f asks in the clear.
func (r *resolver) probeFor(f *flight, s *tlsSide) *probe {
	p := &probe{resolver: r, side: s}
	p.x.Query = r.query(nil, f.key.question, f.edns, f.key.subnet)
	p.x.To, p.x.From, p.x.Stream, p.x.Timeout, p.x.Owner = s.to, r.source(f.server.Addr.Addr()), true, probeTime, p
	p.x.Deadline = time.Now().Add(probeTime)
	return p
}

// EndExchange implements proxy.Ender.
func (p *probe) EndExchange(x *proxy.Exchange) {
	good := served(x)
	p.encryption.probes.Add(-1)
	p.side.learned(good, p.now())
	p.counts.encrypted(map[bool]string{true: "probed", false: "unable"}[good])
}

// What listens at port 853 need not be the server of port 53: it may be another one, which refuses the zone, or one in
// front of it, which does not reach it. Its errors tell nothing of the zone, and neither does what a resolver says.

// served reports whether the end of an exchange over TLS is the whole reply of an authority, and no error.
func served(x *proxy.Exchange) bool {
	if x.Err != nil || x.Facts.TC {
		return false
	}
	switch x.Reply[3] & 0xF {
	case wire.Success, wire.NXDomain, dns.RcodeYXDomain:
		return x.Reply[3]&(wire.FlagRA&0xFF) == 0 || x.Reply[2]&(wire.FlagAA>>8) != 0
	}
	return false
}

// Bounds of how long a query may take over TLS before it is asked in the clear.
const (
	leastSecureWait = 300 * time.Millisecond
	mostSecureWait  = time.Second
)

// beginSecure asks over TLS.
func (f *flight) beginSecure(p *peer, loop *eventloop.Loop) {
	f.secure, f.mix, f.wait = true, f.x.MixCase, f.x.Timeout
	f.x.To, f.x.Stream, f.x.MixCase, f.x.Cookie = p.secure.to, true, false, false
	f.x.Timeout = min(max(3*f.x.Timeout, leastSecureWait), mostSecureWait) // there may be a handshake
	f.encryption.proxy.BeginIn(&f.x, loop)
}

// mostMisses is how often in a row a server that is connected may have no reply over TLS that is of use.
const mostMisses = 4

// inClear begins the exchange anew without TLS, after an error. A server whose connection is lost, or does not come
// about, is not asked over TLS for a while; neither is one that is connected, but of no use time after time.
func (f *flight) inClear(x *proxy.Exchange) {
	side := &f.server.Peer.(*peer).secure
	lost := x.Err != nil && (!errors.Is(x.Err, os.ErrDeadlineExceeded) || x.Local == nil)
	if lost || side.misses.Add(1) >= mostMisses {
		side.learned(false, f.now())
	}
	f.counts.encrypted("failed")
	f.secure = false
	x.To, x.Stream, x.MixCase, x.Cookie, x.Timeout = f.server.Peer.(*peer).to, f.tcp, f.mix, f.cookie, f.wait
	f.proxy.BeginIn(x, x.Loop)
}
