package proxy

import (
	"net/netip"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/transport"
)

// This file lets Proxies that ask one upstream over UDP in one way share their sockets: a server with a forward for
// each of ten zones, all to one address, has batches of queries as large as with one forward, where ten engines would
// send and receive ten small ones. Each Proxy keeps what tells of it or of its queries: health, latency, cookies,
// letters of random case, timeouts. What it counts stands under the upstream's name and address in any case.

// group is the Proxies that share sockets.
type group struct {
	key     groupKey
	proxy   *Proxy // nobody's upstream: its engine carries the UDP exchanges of all members
	members int    // guarded by groups.mu
}

// groupKey is what members have in common.
type groupKey struct {
	name, addr string
	conf       config
}

var groups struct {
	mu   sync.Mutex
	open map[groupKey]*group
}

// ShareSockets lets the Proxy send from the sockets of others that ask the same upstream over UDP in the same way. It
// belongs before the first query, as the settings do. An upstream that is known by name shares nothing.
func (p *Proxy) ShareSockets() {
	_, err := netip.ParseAddrPort(p.hostPort)
	p.shares = p.protocol == transport.DNS && err == nil
}

// engineOf is the engine that x is carried by.
func (p *Proxy) engineOf(x *Exchange) *engine {
	if !p.shares || x.Stream || p.secured() {
		return &p.engine
	}
	if g := p.group.Load(); g != nil {
		return &g.proxy.engine
	}
	return p.join()
}

// join makes p a member of its group, unless it was stopped.
func (p *Proxy) join() *engine {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if p.left {
		return &p.engine // which is stopped
	}
	g := p.group.Load()
	if g == nil {
		key := groupKey{p.name, p.addr, *p.transport.conf.Load()}
		if g = groups.open[key]; g == nil {
			g = &group{key: key, proxy: NewProxy(p.name, p.addr, p.protocol)}
			g.proxy.transport.conf.Store(&key.conf)
			if groups.open == nil {
				groups.open = map[groupKey]*group{}
			}
			groups.open[key] = g
		}
		g.members++
		p.group.Store(g)
	}
	return &g.proxy.engine
}

// leave ends what is under way for p in its group, and the group with its last member.
func (p *Proxy) leave() {
	groups.mu.Lock()
	g := p.group.Load()
	if p.left || g == nil {
		p.left = true
		groups.mu.Unlock()
		return
	}
	p.left = true
	g.members--
	last := g.members == 0
	if last {
		delete(groups.open, g.key)
	}
	groups.mu.Unlock()
	g.proxy.engine.dismiss(p)
	if last {
		g.proxy.Stop()
	}
}

// dismiss ends all exchanges of p, and waits until their owners know. What p begins from now on ends at once.
func (e *engine) dismiss(p *Proxy) {
	var failures []failure
	e.mu.Lock()
	p.dismissed = true
	now := e.now()
	dismissAll := func(pending *idTable) {
		for _, x := range pending.all() {
			if x.proxy == p {
				e.take(x, now)
				failures = append(failures, failure{x, errStopped})
			}
		}
	}
	e.udp.each(func(s *udpSocket) { dismissAll(&s.pending) })
	for _, c := range append([]*streamConn(nil), e.streams.conns...) { // of those who were refused over UDP
		dismissAll(&c.pending)
	}
	e.unlock()
	e.endAll(failures)
	e.ending.wait() // those who took one before have ended it
}
