package iterate

import (
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file finds out who may be asked at a cut: its servers, and the addresses that are
// known of them. choose.go takes one of them.

// servers are those of the cut whose addresses are known.
func (t *task) servers() []*store.Server {
	var all []*store.Server
	r := t.run
	for i, h := range t.hosts() {
		if i >= r.conf.Budget.Hosts && !t.cut.Fixed {
			break
		}
		four, six := 0, 0
		t.addrs(h, func(a netip.Addr) {
			to := h.At(a, r.conf.Port)
			if !r.usable(to, t.cut.Fixed && h.Name == "") {
				return
			}
			n := &four
			if a.Is6() {
				n = &six
			}
			if *n++; *n > perFamily && !t.cut.Fixed {
				return
			}
			for _, s := range all {
				if s.Addr == to {
					return
				}
			}
			all = append(all, r.conf.Stores.Servers.Get(to, func() any { return r.conf.Peer(to) }))
		})
	}
	return all
}

// speaks reports whether a reading has more than what a server says that does not know.
func (rd *reading) speaks() bool { return rd.kind != noData || rd.soa != nil }

// resolversOnly reports whether all of the cut's servers are known to be resolvers, as where somebody on the way
// answers in their place: none of them knows better than another. Those whose addresses are not known yet may.
func (t *task) resolversOnly() bool {
	hosts := t.hosts()
	for _, h := range hosts[:min(len(hosts), max(t.run.conf.Budget.Hosts, 1))] {
		known := h.Name == "" || t.soughtFor(h.Name)
		t.addrs(h, func(a netip.Addr) { known = known || t.run.usable(h.At(a, t.run.conf.Port), false) })
		if !known {
			return false
		}
	}
	return !slices.ContainsFunc(t.servers(), func(s *store.Server) bool { return !s.Resolver(t.cut.Zone, t.run.now) })
}

// hosts are the names of the cut's servers.
func (t *task) hosts() []store.Host {
	if t.here.child {
		return t.cut.Child
	}
	return t.cut.Hosts
}

// usable reports whether the server at an address is asked; stub says that the address stands in the configuration.
func (r *Run) usable(to netip.AddrPort, stub bool) bool {
	a := to.Addr()
	switch {
	case !a.IsValid() || a.Is4() && !r.conf.IPv4 || a.Is6() && !r.conf.IPv6:
		return false
	case stub: // in a network of its own, perhaps
		return r.conf.DeniedStub == nil || !r.conf.DeniedStub(to)
	case a.Is4() && !r.conf.asksIPv4() || a.Is6() && !r.conf.asksIPv6():
		return false
	}
	return !r.conf.Denied(a) && (r.conf.Own == nil || !r.conf.Own(to))
}

// addrs calls f with the addresses of a host: its glue, what this task has found, what
// is kept.
func (t *task) addrs(h store.Host, f func(netip.Addr)) {
	for _, a := range h.Addrs {
		f(a)
	}
	if h.Name == "" {
		return
	}
	if t.here.parents {
		t.glueOf(h.Name, f)
	}
	for _, o := range t.found {
		if o.Name == h.Name {
			for _, a := range o.Addrs {
				f(a)
			}
		}
	}
	t.run.conf.KeptAddrs(h.Name, t.run.now, f)
}

// KeptAddrs calls f with the addresses of a host that are kept as answers.
func (c *Config) KeptAddrs(host string, now store.Time, f func(netip.Addr)) {
	for _, typ := range [...]uint16{wire.TypeA, wire.TypeAAAA} {
		if e := c.Stores.RRsets.Positive(host, typ, now); e != nil {
			e.Set.Each(func(rdata string) bool { f(rrset.Address(rdata)); return true })
		}
	}
}

// glueOf calls f with the addresses that the parent of a server's own zone has told of
// it, whatever that zone says, and be it that the name is referred on.
func (t *task) glueOf(host string, f func(netip.Addr)) {
	for zone := host; ; zone = rrset.Parent(zone) {
		d := t.run.conf.Stores.Delegations.Closest(zone, t.run.now)
		if d == nil {
			return
		}
		for _, h := range d.Hosts {
			if h.Name == host {
				for _, a := range h.Addrs {
					f(a)
				}
			}
		}
		if zone = d.Zone; zone == rrset.Root {
			return
		}
	}
}
