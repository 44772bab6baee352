package kubernetes

import (
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// plan is a Kubernetes' configuration in the form in which queries use it. It never changes.
type plan struct {
	options
	zones   wire.Suffixes[*zone]
	primary *zone // nil if all zones are reverse ones
	through wire.Suffixes[struct{}]

	fromZones, fromFall []string // what it was made of
}

// zone is one of the zones that are served.
type zone struct {
	name         []byte // lower, in wire form
	reverse      bool   // below in-addr.arpa or ip6.arpa
	multicluster bool   // of imported services
}

// compiled returns the plan of k. It is made at the first query, and anew when somebody has put other zones in place.
func (k *Kubernetes) compiled() *plan {
	if k.shared == nil {
		return k.compile()
	}
	p := k.shared.plan.Load()
	if p == nil || !same(p.fromZones, k.Zones) || !same(p.fromFall, k.Fall.Zones) {
		p = k.compile()
		k.shared.plan.Store(p)
	}
	return p
}

// same tells whether a and b are one slice.
func same(a, b []string) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func (k *Kubernetes) compile() *plan {
	p := &plan{options: k.options, fromZones: k.Zones, fromFall: k.Fall.Zones}
	if k.shared == nil {
		p.options = defaults
	}
	for _, text := range k.Zones {
		name, err := wire.LowerName(text)
		if err != nil {
			continue
		}
		z := &zone{name: name, reverse: wire.InReverse(name)}
		for _, mc := range k.multicluster {
			z.multicluster = z.multicluster || mc == text
		}
		p.zones.Set(name, z)
		if p.primary == nil && !z.reverse {
			p.primary = z
		}
	}
	for _, text := range k.Fall.Zones {
		if name, err := wire.LowerName(text); err == nil {
			p.through.Set(name, struct{}{})
		}
	}
	return p
}

// passesOn reports whether a lower name that does not exist is one for the next plugin.
func (p *plan) passesOn(name []byte) bool {
	if p.through.Len() == 0 {
		return false
	}
	_, ok := p.through.Longest(name)
	return ok
}
