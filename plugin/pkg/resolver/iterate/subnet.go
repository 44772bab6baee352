package iterate

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file passes on in which network a client says it is (RFC 7871), to the servers of zones for which the operator
// wants that, and to no others. It is never made up, and asked with the full question of the client only.
//
// What a server tells for one network is handed to that client and not kept: the cache above keeps replies by network.

// Subnet has a Run pass a client subnet on: the data of the option with scope 0. It belongs before the first Step.
func (r *Run) Subnet(option string) { r.subnet = option }

// scoped reports whether the answer to the task depends on the client's network, so that nothing that is kept will do.
func (t *task) scoped() bool {
	r := t.run
	if r.subnet == "" || t != r.root || infrastructure(t.q.Type) {
		return false
	}
	return belowAny(t.name, r.conf.Subnets)
}

// infrastructure reports whether records of a type are for resolvers: all networks are to have the same.
func infrastructure(typ uint16) bool {
	switch typ {
	case wire.TypeNS, wire.TypeSOA, rrset.TypeDS, rrset.TypeDNSKEY, rrset.TypeNSEC, rrset.TypeNSEC3, wire.TypeRRSIG:
		return true
	}
	return false
}

// shown is the option that the servers of the cut get to see, empty if none.
func (t *task) shown() string {
	if !t.scoped() || !t.here.last || t.unshown || !belowAny(t.cut.Zone, t.run.conf.Subnets) {
		return ""
	}
	return t.run.subnet
}

// tailors notes for which part of the client's network a reply is good. It reports false if the reply is for another
// network, and so for another query (RFC 7871 §7.3).
func (t *task) tailors(a *ask, m *rrset.Message) bool {
	t.tailored = false
	if a.subnet == "" || m.Subnet == "" {
		return true
	}
	if len(m.Subnet) != len(a.subnet) || m.Subnet[:3] != a.subnet[:3] || m.Subnet[4:] != a.subnet[4:] {
		return false
	}
	t.tailored = m.Subnet[3] > 0
	t.run.result.Scope = max(t.run.result.Scope, m.Subnet[3])
	return true
}

func belowAny(name string, zones []string) bool {
	for _, z := range zones {
		if rrset.Below(name, z) {
			return true
		}
	}
	return false
}
