package forward

import (
	"crypto/tls"
	"fmt"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// source is where upstreams come from: an address, or a name whose addresses they are. Forward.mu guards it.
type source struct {
	target  target
	proxies []*proxy.Proxy
}

// publish lets new queries see the upstreams of all sources, each endpoint once. f.mu is held.
func (f *Forward) publish() {
	all := []*proxy.Proxy{}
	seen := map[string]bool{}
	for _, s := range f.sources {
		for _, p := range s.proxies {
			e := endpoint(p.Protocol(), p.Addr())
			if !seen[e] || s.target.host == "" { // who adds upstreams by SetProxy may add one twice
				seen[e] = true
				all = append(all, p)
			}
		}
	}
	f.upstreams.Store(&all)
}

// newProxy is the upstream at one address of a target.
func (s *settings) newProxy(t target) *proxy.Proxy {
	p := proxy.NewProxy(pluginName, t.address(), t.protocol)
	p.SetExpire(s.expire)
	p.SetMaxAge(s.maxAge)
	p.SetMaxIdleConns(s.maxIdleConns)
	p.SetReadTimeout(s.readTimeout)
	p.ShareSockets()
	if s.rules.hedge {
		p.Measure()
		hedges.WithLabelValues(p.Addr())
	}
	if s.randomCase {
		p.RandomizeCase()
	}
	if s.source != nil {
		p.SetLocalAddress(s.source)
	}
	switch t.protocol {
	case transport.HTTPS, transport.HTTPS3:
		p.SetTLSConfig(s.tlsFor(t.serverName))
		p.SetDOHRequestOptions(s.dohMethod)
		if name := s.serverName(t); name != "" {
			p.SetDOHHost(name)
		}
	case transport.TLS, transport.QUIC:
		p.SetTLSConfig(s.tlsFor(t.serverName))
	}
	h := p.GetHealthchecker()
	h.SetRecursionDesired(s.options.HCRecursionDesired)
	h.SetDomain(s.options.HCDomain)
	if s.options.ForceTCP && t.protocol == transport.DNS {
		h.SetTCPTransport()
	}
	return p
}

// serverName is the name that the certificate of a target must be for, "" for its address.
func (s *settings) serverName(t target) string {
	if s.tlsServerName != "" {
		return s.tlsServerName
	}
	return t.serverName
}

// secure makes the TLS settings: one for all upstreams, and one for each name of a single address. Each remembers as many
// sessions as it has upstreams.
func (s *settings) secure() error {
	count := map[string]int{}
	for i := range s.targets {
		t := &s.targets[i]
		if t.serverName != "" && s.tlsServerName != "" {
			return fmt.Errorf("both forward ('%s') and proxy level ('%s') TLS servernames are set for upstream proxy '%s'", s.tlsServerName, t.serverName, t.address())
		}
		if t.named && t.protocol != transport.DNS && s.tlsServerName == "" {
			t.serverName = t.host
		}
		count[t.serverName]++
	}
	base := s.tls
	if base == nil {
		base = new(tls.Config)
	}
	s.secured = map[string]*tls.Config{}
	for name, n := range count {
		cfg := base.Clone()
		cfg.ServerName = name
		if name == "" {
			cfg.ServerName, n = s.tlsServerName, len(s.targets)
		}
		cfg.ClientSessionCache = tls.NewLRUClientSessionCache(n)
		s.secured[name] = cfg
	}
	return nil
}

func (s *settings) tlsFor(name string) *tls.Config { return s.secured[name] }

// OnStartup finds out the addresses of upstreams that are known by name, and starts all upstreams.
func (f *Forward) OnStartup() error {
	if f.names != nil {
		if err := f.names.start(f); err != nil {
			return err
		}
	}
	for _, p := range *f.upstreams.Load() {
		p.Start(f.probeInterval)
	}
	return nil
}

// OnShutdown stops all upstreams, and waits for that.
func (f *Forward) OnShutdown() error {
	if f.names != nil {
		f.names.stop()
	}
	f.mu.Lock()
	var all []*proxy.Proxy
	for _, s := range f.sources {
		all = append(all, s.proxies...)
	}
	f.mu.Unlock()
	stopAll(all)
	return nil
}

func stopAll(proxies []*proxy.Proxy) {
	var wg sync.WaitGroup
	for _, p := range proxies {
		wg.Go(p.Stop)
	}
	wg.Wait()
}
