package iterate

import (
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file asks a parent once more who the servers of a zone are, where none of those
// that are known is of use. A zone moves from one operator to another within minutes, and
// the NS set of its parent has a TTL of a day or two.
//
// It costs a query, at most once in a while for each zone. What the parent says takes
// the place of what it said before, but is kept no longer than that would have been
// (store.Delegations): a name that is asked for makes no delegation live longer. If the parent
// says the same again, or nothing, the search goes on where it was. The same goes for
// addresses that zones of others tell of their names.

const (
	renewAfter  = 10 * store.Second // for so long what was told of a zone's servers is good enough
	silentAfter = store.Second / 4  // for so long a parent is left alone that has not replied
	reseekHosts = 2                 // names of servers whose addresses are asked for once more, for one question
)

// A zone and those below it may move together. So where none of the parent's servers is of
// use either, its own parent is asked, and so on.

// aside is a visit that waits for what the parent says.
type aside struct {
	cut   *store.Delegation
	here  visit
	min   minimiser
	below *aside // that waits for the servers of this cut, or nil
}

// renew goes up to the parent of the cut to learn whether its servers are others by now. It reports whether it does.
func (t *task) renew() bool {
	d, r := t.cut, t.run
	if !t.mayRenew() {
		return false
	}
	t.renewed = append(t.renewed, d.Zone)
	if now := r.conf.Stores.Delegations.Get(d.Zone, r.now); now != nil && now.Told > d.Told { // another Run has asked
		if !tellsMore(now, d) {
			return false
		}
		t.moved(now)
		return true
	}
	up := r.conf.Closest(rrset.Parent(d.Zone), r.now)
	if up == nil {
		up = r.conf.Hints
	}
	t.aside = &aside{d, t.here, t.min, t.aside}
	t.min.full = r.conf.Minimise == Off
	t.moved(up)
	return true
}

// mayRenew reports whether the parent may be asked.
func (t *task) mayRenew() bool {
	d, r := t.cut, t.run
	return !slices.Contains(t.renewed, d.Zone) && !d.Fixed && d.Zone != rrset.Root && !r.ahead && r.now >= d.Told+renewAfter &&
		(t.here.soft == nil || t.aside != nil)
}

// moved has the task go on at another cut.
func (t *task) moved(d *store.Delegation) {
	t.cut, t.stage = d, descending
	t.min.at(d.Zone)
}

// reseek has the addresses of one more of the cut's servers asked for that its own zone has told a while ago: they may
// be others by now. It reports whether it does.
func (t *task) reseek() bool {
	r := t.run
	if r.ahead || t.cut.Fixed || t.here.soft != nil || len(t.here.resought) >= reseekHosts {
		return false
	}
	hosts := t.hosts()
	hosts = hosts[:min(len(hosts), max(r.conf.Budget.Hosts, 1))]
	for i := range hosts {
		h := hosts[i].Name
		if h == "" || rrset.Below(h, t.cut.Zone) || slices.Contains(t.here.resought, h) {
			continue
		}
		n := len(r.tasks)
		t.reask(h, wire.TypeA, r.conf.asksIPv4())
		t.reask(h, wire.TypeAAAA, r.conf.asksIPv6())
		if len(t.needs) > 0 {
			t.here.resought = append(t.here.resought, h)
			t.stage = waiting
			r.advanceFrom(n)
			return true
		}
	}
	return false
}

// reask asks for addresses of a host that are kept for a while, unless that has just failed.
func (t *task) reask(host string, typ uint16, may bool) {
	r, stores := t.run, t.run.conf.Stores
	if e := stores.RRsets.Positive(host, typ, r.now); !may || e == nil || r.now < e.Expires-store.Time(e.TTL)*store.Second+renewAfter {
		return
	}
	if _, failed := stores.Failures.Get(host, typ, r.now); !failed && r.spent.addresses < addressQuestions && t.need(Question{host, typ}, true, "") {
		r.spent.addresses++
	}
}

// back goes on where the task was before it asked the parent, which is left alone for a while, whatever it said: for a
// shorter one if it said nothing.
func (t *task) back() {
	a := t.aside
	t.asideOver(a.below)
	t.cut, t.here, t.min, t.stage = a.cut, a.here, a.min, choosing
}

// asideOver notes of the zones that wait, down to one, that their parents were asked.
func (t *task) asideOver(below *aside) {
	all, now := &t.run.conf.Stores.Delegations, t.run.now
	told := now
	if !t.here.heard {
		told -= renewAfter - silentAfter
	}
	for ; t.aside != below; t.aside = t.aside.below {
		if d := all.Get(t.aside.cut.Zone, now); d != nil && d.Told == t.aside.cut.Told {
			asked := *d
			asked.Told = told
			all.Put(&asked, now)
		}
	}
}

// says notes that the parent refers to a delegation, and reports whether that tells nothing new: those were tried.
func (t *task) says(d *store.Delegation) bool {
	for t.aside != nil && rrset.Below(d.Zone, t.aside.cut.Zone) { // else it is a zone in between
		if d.Zone != t.aside.cut.Zone {
			t.run.conf.Stores.Delegations.Remove(t.aside.cut.Zone) // the parent refers past it
		} else if !tellsMore(d, t.aside.cut) {
			return true
		}
		t.aside = t.aside.below
	}
	return false
}

// undelegated notes that the parent answers itself: there is no such zone any more.
func (t *task) undelegated() {
	for t.aside != nil && rrset.Below(t.here.q.Name, t.aside.cut.Zone) {
		t.run.conf.Stores.Delegations.Remove(t.aside.cut.Zone)
		t.aside = t.aside.below
	}
}

// tellsMore reports whether d has a server, or an address of one, that old has not.
func tellsMore(d, old *store.Delegation) bool {
	return slices.ContainsFunc(d.Hosts, func(h store.Host) bool {
		i := slices.IndexFunc(old.Hosts, func(o store.Host) bool { return o.Name == h.Name })
		return i < 0 || slices.ContainsFunc(h.Addrs, func(a netip.Addr) bool { return !slices.Contains(old.Hosts[i].Addrs, a) })
	})
}
