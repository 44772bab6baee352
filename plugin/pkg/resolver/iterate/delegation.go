package iterate

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file is zone cuts: which one is closest to a name (RFC 1034 §5.3.3 step 2), what
// a referral makes of it (step 4b), and the root's, which is primed (RFC 9609).

const maxHosts = 20 // names of servers that are kept of one delegation

// Shared is what all Runs of a configuration know beside the Stores.
type Shared struct {
	mu      sync.Mutex
	retry   store.Time // when priming is tried again, after it failed
	primed  store.Time // when it was done last
	Primed  func(d *store.Delegation)
	Unready func(why string) // priming failed; it is told once until priming is tried again
	// Strange is told of servers of the root that are not those of the hints, and of their NS
	// RRset. It is nil, or returns nil, if they are used all the same; else what it returns is
	// called, and calls use some time if they may be.
	Strange func(why string, set *rrset.Set, use func()) (vet func())

	NoIPv4, NoIPv6 atomic.Bool // the family is left out for now
}

// asksIPv4 reports whether servers that others tell of are asked by IPv4 addresses, asksIPv6 by others.
func (c *Config) asksIPv4() bool { return c.IPv4 && !c.Shared.NoIPv4.Load() }
func (c *Config) asksIPv6() bool { return c.IPv6 && !c.Shared.NoIPv6.Load() }

const primeAgain = 60 * store.Second

// PrimedAt is when the root was primed last, 0 if it never was.
func (s *Shared) PrimedAt() store.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.primed
}

// Inherit takes over when another configuration's root was primed.
func (s *Shared) Inherit(o *Shared) {
	at := o.PrimedAt()
	s.mu.Lock()
	s.primed = at
	s.mu.Unlock()
}

// due reports whether the root should be primed.
func (s *Shared) due(now store.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isDue(now)
}

// isDue is due; mu is held.
func (s *Shared) isDue(now store.Time) bool { return now >= s.retry || s.retry-now > primeAgain }

// failed notes that the root's servers could not be had, be it that a client has asked for them. It is not inlined: it
// is seldom that they cannot.
//
//go:noinline
func (s *Shared) failed(now store.Time, why string) {
	s.mu.Lock()
	first := s.isDue(now)
	if first {
		s.retry = now + primeAgain
	}
	s.mu.Unlock()
	if first && s.Unready != nil {
		s.Unready(why)
	}
}

func (s *Shared) done(now store.Time, d *store.Delegation) {
	s.mu.Lock()
	s.primed = now
	s.mu.Unlock()
	if s.Primed != nil {
		s.Primed(d)
	}
}

// rootNS is the question that primes.
var rootNS = Question{rrset.Root, wire.TypeNS}

// A cut that is known ends the search: what is above would only refer to it again. The
// exceptions are its end of life, after which the parent is asked anew, and servers none
// of which answers (renew.go).

// descend finds the closest cut, if there is none yet, and the question for its
// servers.
func (t *task) descend() {
	r := t.run
	if t.cut == nil {
		t.cut = t.closest()
		if t.cut == nil {
			t.cut = r.conf.Hints
			if t.q != rootNS && !t.primed && !t.hasRoot() && r.conf.Shared.due(r.now) && t.need(rootNS, true, "") {
				t.cut, t.stage = nil, waiting
				r.advance(r.tasks[len(r.tasks)-1])
				return
			}
		}
		t.min.at(t.cut.Zone)
	}
	for {
		q, last := t.min.next(Question{t.name, t.q.Type})
		if !last && t.aside == nil && t.known(q) { // who is asked once more is not told more
			continue
		}
		if !last {
			t.min.steps++
		}
		if !t.done {
			was := t.here
			t.here, t.stage = visit{q: q, zone: t.cut.Zone, last: last}, choosing
			if was.zone == t.cut.Zone {
				t.here.probes, t.here.quiet = was.probes, was.quiet
			}
		}
		return
	}
}

// known takes a step of minimisation that what is kept makes needless, and reports
// whether it did.
func (t *task) known(q Question) bool {
	s, now := &t.run.conf.Stores.RRsets, t.run.now
	e := s.Get(q.Name, q.Type, now)
	if e == nil {
		e = s.Get(q.Name, wire.TypeCNAME, now)
	}
	switch {
	case e == nil:
		return false
	case e.Kind == store.NXDomain:
		t.min.full = true
	default:
		t.min.took(q.Name)
	}
	return true
}

// closest is the deepest cut at or above the task's name whose servers are known: of
// the configuration, or as a parent told. For a DS record it is one above the name (RFC
// 4035 §3.1.4.1). It is nil if only the hints are left.
func (t *task) closest() *store.Delegation {
	name := t.name
	if t.q.Type == rrset.TypeDS && name != rrset.Root {
		name = rrset.Parent(name)
	}
	if t.above != "" && rrset.Below(name, t.above) {
		name = rrset.Parent(t.above)
	}
	return t.run.conf.Closest(name, t.run.now)
}

// Closest is the deepest cut at or above name whose servers are known: of the configuration, or as a parent told. It is
// nil if only the hints are left.
func (c *Config) Closest(name string, now store.Time) *store.Delegation {
	d := c.Stores.Delegations.Closest(name, now)
	for len(c.Stubs) > 0 {
		if s := c.Stubs[name]; s != nil {
			return s
		}
		if d != nil && d.Zone == name || name == rrset.Root {
			break
		}
		name = rrset.Parent(name)
	}
	return d
}

// referBack ends a task that asks a zone's parent for the address of one of the zone's
// own servers: the parent may have it as glue.
func (t *task) referBack(rd *reading) {
	d := &store.Delegation{Hosts: []store.Host{{Name: t.q.Name}}}
	t.run.glue(d, rd.additional, t.cut.Zone)
	for _, a := range d.Hosts[0].Addrs {
		if a.Is4() == (t.q.Type == wire.TypeA) {
			t.sets = append(t.sets, rrset.New(t.q.Name, t.q.Type, 0, string(a.AsSlice())))
		}
	}
	t.finish(rcodeSuccess)
}

// leadsNowhere reports whether a referral names servers in the zone itself only, and tells the address of none (RFC
// 9471 §2.1: it has to, or to set TC).
func (rd *reading) leadsNowhere() bool {
	within := true
	rd.ns.Each(func(rdata string) bool {
		within = rrset.Below(rrset.Target(rdata), rd.ns.Name)
		return within
	})
	return within && !slices.ContainsFunc(rd.additional, func(s *rrset.Set) bool {
		return (s.Type == wire.TypeA || s.Type == wire.TypeAAAA) && rrset.Below(s.Name, rd.ns.Name)
	})
}

// refer makes a delegation of a referral by a server of the task's cut.
//
// It lives no longer than that cut: a zone that is taken away ends with its delegation,
// whatever its own servers say, and with it all below.
func (t *task) refer(rd *reading) *store.Delegation {
	r := t.run
	d := &store.Delegation{Zone: rd.ns.Name, DS: rd.ds, Denials: rd.denials, Told: r.now, Expires: r.now.After(r.ttl(rd.ns.TTL))}
	if !t.cut.Fixed && t.cut.Expires < d.Expires {
		d.Expires = t.cut.Expires
	}
	d.Holds = d.Expires
	if d.DS != nil {
		d.Holds = min(d.Holds, r.now.After(r.ttl(d.DS.TTL)))
	}
	for _, s := range d.Denials {
		d.Holds = min(d.Holds, r.now.After(min(r.ttl(s.TTL), r.conf.MaxNeg)))
	}
	rd.ns.Each(func(rdata string) bool {
		d.Hosts = append(d.Hosts, store.Host{Name: rrset.Target(rdata)})
		return len(d.Hosts) < maxHosts
	})
	r.glue(d, rd.additional, t.cut.Zone)
	r.conf.Stores.Delegations.Put(d, r.now)
	t.keysAhead(d)
	return d
}

// glue gives the hosts of d the addresses that stand in an additional section: of names
// at or below the zone whose server told them. One that is not asked is left out alone.
func (r *Run) glue(d *store.Delegation, additional []*rrset.Set, zone string) {
	at := make(map[string]int, len(d.Hosts))
	for i, h := range d.Hosts {
		at[h.Name] = i
	}
	for _, s := range additional {
		i, ok := at[s.Name]
		if !ok || s.Type != wire.TypeA && s.Type != wire.TypeAAAA || !rrset.Below(s.Name, zone) {
			continue
		}
		n := 0
		s.Each(func(rdata string) bool {
			if a := rrset.Address(rdata); a.IsValid() && !r.conf.Denied(a) {
				d.Hosts[i].Addrs = append(d.Hosts[i].Addrs, a)
				n++
			}
			return n < perFamily
		})
	}
}

// prime makes the root's delegation of what a root server said of it (RFC 9609 §4).
// Nothing else does.
func (t *task) prime(set *rrset.Set, additional []*rrset.Set) {
	r := t.run
	d := &store.Delegation{Zone: rrset.Root, Expires: r.now.After(max(r.ttl(set.TTL), 1))}
	set.Each(func(rdata string) bool {
		d.Hosts = append(d.Hosts, store.Host{Name: rrset.Target(rdata)})
		return len(d.Hosts) < maxHosts
	})
	r.glue(d, additional, rrset.Root)
	why := r.strange(d)
	r.hint(d)
	conf, now := r.conf, r.now
	use := func() {
		conf.Stores.Delegations.Put(d, now)
		conf.Shared.done(now, d)
	}
	if why != "" && conf.Shared.Strange != nil {
		if vet := conf.Shared.Strange(why, set, use); vet != nil {
			conf.Shared.failed(now, why)
			vet()
			return
		}
	}
	use()
}

// strange tells what servers of the root have not in common with the hints, "" if they may well be the same: some name,
// and an address of each name that both have addresses of.
func (r *Run) strange(d *store.Delegation) (why string) {
	common := false
	for _, h := range d.Hosts {
		for _, o := range r.conf.Hints.Hosts {
			if o.Name != h.Name {
				continue
			}
			common = true
			if len(h.Addrs) > 0 && len(o.Addrs) > 0 && !slices.ContainsFunc(h.Addrs, func(a netip.Addr) bool { return slices.Contains(o.Addrs, a) }) {
				why = rrset.Text(h.Name) + " has no address that the hints have"
			}
		}
	}
	if !common {
		return "none of the root's servers is one of the hints"
	}
	return why
}

// hint gives the root's servers that were told without an address those of the hints,
// and if none has any, the servers of the hints.
func (r *Run) hint(d *store.Delegation) {
	known := 0
	for i, h := range d.Hosts {
		for _, o := range r.conf.Hints.Hosts {
			if o.Name == h.Name && len(h.Addrs) == 0 {
				d.Hosts[i].Addrs = o.Addrs
			}
		}
		known += len(d.Hosts[i].Addrs)
	}
	if known == 0 {
		d.Hosts = append(d.Hosts, r.conf.Hints.Hosts...)
	}
}

// ttl is a TTL within the bounds of the configuration.
func (r *Run) ttl(ttl uint32) uint32 { return min(max(ttl, r.conf.MinTTL), r.conf.MaxTTL) }
