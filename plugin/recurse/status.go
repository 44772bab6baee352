package recurse

import (
	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// This file lets who operates the server look at what is kept, and flush it: an answer that is flushed from the cache
// alone would come back from here.

var _ status.Cache = (*Recurse)(nil)

// fits reports whether what is kept of a name and type is meant by m; type 0 is that there is no such name.
func fits(m *status.Match, name string, typ uint16) bool {
	if m.Type != 0 && typ != 0 && m.Type != typ {
		return false
	}
	if m.Below {
		return rrset.Below(name, string(m.Name))
	}
	return name == string(m.Name)
}

// CacheEntries implements status.Cache.
func (r *Recurse) CacheEntries(m status.Match, f func(status.CacheEntry) bool) {
	now := r.now()
	var all []status.CacheEntry
	r.conf.Stores.RRsets.Each(func(name string, typ uint16, e *store.Entry) {
		if e.Expires > now && fits(&m, name, typ) {
			all = append(all, statusOf(name, typ, e, now))
		}
	})
	for _, e := range all {
		if !f(e) {
			return
		}
	}
}

// statusOf is what there is to tell of an entry.
func statusOf(name string, typ uint16, e *store.Entry, now store.Time) status.CacheEntry {
	out := status.CacheEntry{
		Name: rrset.Text(name), Type: dns.Type(typ).String(), Class: dns.Class(wire.ClassIN).String(),
		Rcode: rcode.ToString(0), TTL: int(e.Left(now)), DO: true, Octets: e.Size(),
	}
	switch e.Kind {
	case store.Positive:
		out.Answer = int(e.Set.N)
	case store.NXDomain:
		if out.Rcode = rcode.ToString(wire.NXDomain); typ == 0 {
			out.Type = "ANY"
		}
	}
	return out
}

// CacheFlush implements status.Cache. With a name its delegation is forgotten, too, what failed for it, and what denies it
// in passing: that a name above it does not exist, and the denials of its zone.
func (r *Recurse) CacheFlush(m status.Match) int {
	s := r.conf.Stores
	n := s.RRsets.ForgetIf(func(name string, typ uint16) bool {
		return fits(&m, name, typ) || typ == 0 && rrset.Below(string(m.Name), name)
	})
	if r.denials != nil {
		r.denials.Forget(string(m.Name))
	}
	s.Failures.ForgetIf(func(name string, typ uint16) bool { return fits(&m, name, typ) })
	if m.Type == 0 || m.Type == wire.TypeNS {
		s.Delegations.Forget(string(m.Name), m.Below)
		for _, told := range r.shown {
			told.forget(string(m.Name), m.Below)
		}
	}
	return n
}

// CacheStatus implements status.Cache.
func (r *Recurse) CacheStatus() status.CacheStatus {
	out := status.CacheStatus{MaxOctets: r.memory}
	for _, z := range r.zones {
		out.Zones = append(out.Zones, rrset.Text(z))
	}
	s := r.conf.Stores
	out.Answers, out.Octets = s.RRsets.Total()
	_, octets := s.Delegations.Total()
	out.Octets += octets
	out.Denials, octets = s.Failures.Total()
	out.Octets += octets
	return out
}
