package forward

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/proxy"
)

// names keeps the upstreams whose hosts are names at their addresses. One goroutine looks them up again
// when their TTL is over, or before that if none of a name is up: it may have others by now. What it finds
// replaces what was there, and a failure leaves it: that of one kind of addresses, those of that kind.
type names struct {
	resolver resolver
	settings *settings
	forward  *Forward
	sources  []*source // those with names
	cancel   context.CancelFunc
	running  sync.WaitGroup
	every    time.Duration // how often it is seen to whether they are up
}

const (
	resolveTimeout = 5 * time.Second // for each name
	minRefresh     = 10 * time.Second
	maxRefresh     = time.Hour
)

// start looks all names up, and goes on doing so. It is an error if one has no address.
func (n *names) start(f *Forward) error {
	n.forward = f
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	next := maxRefresh
	for _, s := range f.sources {
		if s.target.named {
			n.sources = append(n.sources, s)
		}
	}
	for _, s := range n.sources {
		ttl, _, err := n.refresh(ctx, s)
		if err != nil {
			n.cancel()
			return fmt.Errorf("plugin/%s: failed to resolve %q: %w", pluginName, s.target.host, err)
		}
		next = min(next, ttl)
	}
	n.running.Go(func() { n.run(ctx, next) })
	return nil
}

// run refreshes all names until ctx ends.
func (n *names) run(ctx context.Context, next time.Duration) {
	for {
		if n.wait(ctx, next); ctx.Err() != nil {
			return
		}
		next = maxRefresh
		var gone []*proxy.Proxy
		for _, s := range n.sources {
			ttl, old, err := n.refresh(ctx, s)
			if err != nil {
				logger.Warningf("Failed to resolve %q again: %v", s.target.host, err)
				ttl = minRefresh
			}
			gone, next = append(gone, old...), min(next, ttl)
		}
		if len(gone) > 0 {
			pause(ctx, overall) // for the queries that are under way
			stopAll(gone)
		}
	}
}

// wait waits until names are to be looked up again.
func (n *names) wait(ctx context.Context, next time.Duration) {
	for next > 0 && ctx.Err() == nil {
		step := min(next, n.every)
		pause(ctx, step)
		if next -= step; slices.ContainsFunc(n.sources, n.down) {
			return
		}
	}
}

// down reports whether none of a name's addresses is up.
func (n *names) down(s *source) bool {
	n.forward.mu.Lock()
	defer n.forward.mu.Unlock()
	return !slices.ContainsFunc(s.proxies, func(p *proxy.Proxy) bool { return !p.Down(n.forward.maxFails) })
}

// refresh looks up the name of s and publishes its addresses if they changed. It returns how long they are
// good, and the upstreams that are not asked any more.
func (n *names) refresh(ctx context.Context, s *source) (ttl time.Duration, gone []*proxy.Proxy, err error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	now, err := n.resolver.lookup(ctx, s.target.host)
	if err != nil {
		return 0, nil, err
	}
	f := n.forward
	f.mu.Lock()
	defer f.mu.Unlock()
	old := s.proxies
	s.proxies = nil
	for _, a := range n.settings.reachable(now.addrs) {
		s.proxies = append(s.proxies, n.proxyAt(s, old, a))
	}
	for _, p := range old {
		switch {
		case slices.Contains(s.proxies, p):
		case now.lacks(p):
			s.proxies = append(s.proxies, p)
		default:
			gone = append(gone, p)
		}
	}
	f.publish()
	return min(max(now.ttl, minRefresh), maxRefresh), gone, nil
}

// reachable is those of a name's addresses that can be asked from source_address: they are of its family, if any is.
func (s *settings) reachable(addrs []netip.Addr) []netip.Addr {
	if s.source == nil {
		return addrs
	}
	from, _ := netip.AddrFromSlice(s.source)
	var same []netip.Addr
	for _, a := range addrs {
		if a.Is4() == from.Unmap().Is4() {
			same = append(same, a)
		}
	}
	if len(same) == 0 {
		return addrs
	}
	return same
}

// proxyAt is the one of old at an address, or a new one.
func (n *names) proxyAt(s *source, old []*proxy.Proxy, addr netip.Addr) *proxy.Proxy {
	t := s.target
	t.host = addr.String()
	for _, p := range old {
		if p.Addr() == t.address() {
			return p
		}
	}
	p := n.settings.newProxy(t)
	p.Start(n.forward.probeInterval)
	return p
}

// stop ends the looking up, and waits for that.
func (n *names) stop() {
	if n.cancel != nil {
		n.cancel()
		n.running.Wait()
	}
}
