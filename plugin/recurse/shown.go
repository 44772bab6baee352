package recurse

import (
	"strings"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// With the option snoop, forwards of the block refer clients that do not desire recursion, too. What they know of zones'
// servers stands beside their upstreams' answers, where nobody vouches for it. So it lies apart: clients see it, and nothing
// is resolved by it.

const (
	shownOctets = 1 << 20
	shownHosts  = 13 // of a zone
	shownAddrs  = 4  // of a host
)

// shown is the delegations that a forward was told. It implements advice.Referrer.
type shown struct {
	recurse     *Recurse
	takes       func(name []byte) bool // whether the forward is for a name
	delegations *store.Delegations
}

// newShown is for a forward that is for the names that takes says.
func newShown(r *Recurse, takes func(name []byte) bool) *shown {
	return &shown{r, takes, store.NewDelegations(shownOctets)}
}

// Told implements advice.Referrer. A zone above that of the forward is not the upstream's to tell of: a resolver with
// nothing better at hand tells of the root, whose servers know nothing of names within.
func (s *shown) Told(m *rrset.Message) {
	for _, set := range m.Section[rrset.Authority] {
		if set.Type == wire.TypeNS && rrset.Below(m.Name, set.Name) && s.takes([]byte(set.Name)) {
			s.put(set, m.Section[rrset.Additional])
		}
	}
}

// put keeps the servers of a zone, with the addresses of those below it, for as long as all of these hold.
func (s *shown) put(set *rrset.Set, additional []*rrset.Set) {
	d, ttl := &store.Delegation{Zone: set.Name}, min(set.TTL, s.recurse.conf.MaxTTL)
	set.Each(func(rdata string) bool {
		h := store.Host{Name: strings.Clone(rrset.Target(rdata))} // else it would keep all of a large RRset
		for _, a := range additional {
			if a.Name != h.Name || a.Type != wire.TypeA && a.Type != wire.TypeAAAA || !rrset.Below(h.Name, d.Zone) {
				continue
			}
			ttl = min(ttl, a.TTL)
			a.Each(func(rdata string) bool {
				if addr := rrset.Address(rdata); addr.IsValid() && (s.recurse.guarded == nil || !s.recurse.guarded(h.Name, addr)) {
					h.Addrs = append(h.Addrs, addr)
				}
				return len(h.Addrs) < shownAddrs
			})
		}
		d.Hosts = append(d.Hosts, h)
		return len(d.Hosts) < shownHosts
	})
	now := s.recurse.now()
	d.Expires = now.After(ttl)
	d.Holds = d.Expires
	s.delegations.Put(d, now)
}

// Refer implements advice.Referrer. Who wants to transfer a zone is the upstream's.
func (s *shown) Refer(w *wire.Reply, q *wire.Query) bool {
	if q.Class() != wire.ClassIN || ofServer(q.Type()) {
		return false
	}
	now := s.recurse.now()
	d := s.delegations.Closest(cutOf(q), now)
	if d == nil {
		return false
	}
	s.recurse.refer(w, q, d, now)
	w.SetNonAuthoritative(true)
	return true
}

// forget forgets the servers of a zone, or with below those of the zones below it, too.
func (s *shown) forget(zone string, below bool) { s.delegations.Forget(zone, below) }
