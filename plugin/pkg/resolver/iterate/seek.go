package iterate

import (
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file seeks the addresses of servers of which only the names are known (RFC 1034 §5.3.3 step 3), within what one
// question may cost.

// seek begins to seek the addresses of one more of the cut's servers, and reports
// whether it does.
func (t *task) seek() bool {
	r := t.run
	hosts := t.hosts()
	if len(hosts) == 0 || t.useless() >= uselessHosts {
		return false
	}
	limit := min(len(hosts), max(r.conf.Budget.Hosts, 1))
	first := roll(limit)
	for i := range limit {
		h := hosts[(first+i)%limit]
		if h.Name == "" || r.spent.addresses >= addressQuestions || t.soughtFor(h.Name) {
			continue
		}
		t.here.sought = append(t.here.sought, h.Name)
		if r.inside(h.Name, wire.TypeA) != nil { // where nobody has a server for others
			continue
		}
		n, above := len(r.tasks), ""
		root := t.cut.Zone == rrset.Root // who leads to its servers' addresses, but they?
		if root && len(h.Addrs) > 0 {
			continue
		}
		if rrset.Below(h.Name, t.cut.Zone) && !root && !t.cut.Fixed { // only its parent can tell
			above = t.cut.Zone
			if len(h.Addrs) > 0 { // and has told
				continue
			}
		}
		for _, f := range []struct {
			on  bool
			typ uint16
		}{{r.conf.asksIPv4(), wire.TypeA}, {r.conf.asksIPv6(), wire.TypeAAAA}} {
			if f.on && r.spent.addresses < addressQuestions && r.conf.Stores.RRsets.Get(h.Name, f.typ, r.now) == nil &&
				t.need(Question{h.Name, f.typ}, false, above) {
				r.spent.addresses++
			}
		}
		if len(t.needs) == 0 {
			continue
		}
		t.stage = waiting
		r.advanceFrom(n)
		return true
	}
	return false
}

// useless is how many of the names whose addresses were sought have none.
func (t *task) useless() (n int) {
	for _, h := range t.here.sought {
		has := 0
		if t.addrs(store.Host{Name: h}, func(netip.Addr) { has++ }); has == 0 {
			n++
		}
	}
	return n
}

func (t *task) soughtFor(host string) bool { return slices.Contains(t.here.sought, host) }
