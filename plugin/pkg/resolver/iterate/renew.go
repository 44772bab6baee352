package iterate

import (
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// This file asks a parent once more who the servers of a zone are, where none of those
// that are known is of use. A zone moves from one operator to another within minutes, and
// the NS set of its parent has a TTL of a day or two.
//
// It costs a query, at most once in a while for each zone. What the parent says takes
// the place of what it said before, but is kept no longer than that would have been
// (store.Delegations): a name that is asked for makes no delegation live longer. If the parent
// says the same again, or nothing, the search goes on where it was.

// renewAfter is for how long what a parent said of a zone is good enough.
const renewAfter = 10 * store.Second

// aside is a visit that waits for what the parent says.
type aside struct {
	cut  *store.Delegation
	here visit
	min  minimiser
}

// renew goes up to the parent of the cut to learn whether its servers are others by now. It reports whether it does.
func (t *task) renew() bool {
	d, r := t.cut, t.run
	if t.aside != nil || t.renewed == d.Zone || d.Fixed || d.Zone == rrset.Root || r.ahead || r.now < d.Told+renewAfter || t.here.soft != nil {
		return false
	}
	t.renewed = d.Zone
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
	t.aside = &aside{d, t.here, t.min}
	t.min.full = r.conf.Minimise == Off
	t.moved(up)
	return true
}

// moved has the task go on at another cut.
func (t *task) moved(d *store.Delegation) {
	t.cut, t.stage = d, descending
	t.min.at(d.Zone)
}

// back goes on where the task was before it asked the parent.
func (t *task) back() {
	t.cut, t.here, t.min, t.stage = t.aside.cut, t.aside.here, t.aside.min, choosing
	t.aside = nil
}

// says notes that the parent refers to a delegation, and reports whether that tells nothing new: the servers were tried.
func (t *task) says(d *store.Delegation) bool {
	if t.aside == nil || !rrset.Below(d.Zone, t.aside.cut.Zone) { // else it is a zone in between
		return false
	}
	if d.Zone == t.aside.cut.Zone && !tellsMore(d, t.aside.cut) {
		return true
	}
	t.aside = nil
	return false
}

// undelegated notes that the parent answers itself: there is no such zone any more.
func (t *task) undelegated() {
	if t.aside != nil && rrset.Below(t.here.q.Name, t.aside.cut.Zone) {
		t.run.conf.Stores.Delegations.Forget(t.aside.cut.Zone, true)
		t.aside = nil
	}
}

// tellsMore reports whether d has a server, or an address of one, that old has not.
func tellsMore(d, old *store.Delegation) bool {
	return slices.ContainsFunc(d.Hosts, func(h store.Host) bool {
		i := slices.IndexFunc(old.Hosts, func(o store.Host) bool { return o.Name == h.Name })
		return i < 0 || slices.ContainsFunc(h.Addrs, func(a netip.Addr) bool { return !slices.Contains(old.Hosts[i].Addrs, a) })
	})
}
