package kubernetes

import (
	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// result says what came of a query.
type result uint8

const (
	hit       result = iota // the reply is complete
	noData                  // the name exists, without records of the type
	nxDomain                // the name does not exist
	outside                 // an alias leads out of the zone: somebody else has to be asked
	elsewhere               // an alias leads to a name of the zone that the cluster does not have, but somebody else may
	refuse                  // not given to anybody
	later                   // the answer takes some time: not on a goroutine that must not wait
	pass                    // for the next plugin
)

// answer is one reply in the making.
type answer struct {
	*plan
	shared *shared
	store  *store.Store
	conn   dnsController // whose serials count; nil without one
	synced bool
	zone   *zone
	at     int // where the zone begins in the query's name
	w      *wire.Reply
	q      *wire.Query

	target string // where the results outside and elsewhere lead to
}

// decide answers q into w. If the result is pass, outside, elsewhere or later, w holds nothing of use but, for
// outside and elsewhere, the aliases that lead to target.
func (k *Kubernetes) decide(w *wire.Reply, q *wire.Query) (r result, target string) {
	a := answer{w: w, q: q}
	if !a.start(k) {
		return pass, ""
	}
	return a.settle(a.respond()), a.target
}

// start finds the zone of the query and begins the reply. It reports false if the query is for none of the zones.
func (a *answer) start(k *Kubernetes) bool {
	a.plan, a.shared = k.compiled(), k.shared
	z, ok := a.zones.Longest(a.q.Lower())
	if !ok {
		return false
	}
	a.zone, a.at = z, len(a.q.Lower())-len(z.name)
	a.store, a.synced = k.data()
	a.conn = k.APIConn
	a.begin()
	return true
}

// begin makes the reply empty.
func (a *answer) begin() {
	a.w.Begin(a.q)
	a.w.SetFlag(wire.FlagAA, true)
}

// respond writes the records that the query asks for.
func (a *answer) respond() result {
	name, typ := a.q.Lower(), a.q.Type()
	switch {
	case typ == wire.TypeAXFR || typ == wire.TypeIXFR:
		return refuse
	case a.at == 0:
		return a.apex()
	case a.zone.reverse, typ == wire.TypePTR && wire.InReverse(name):
		return a.reverse()
	}
	n := parse(name, a.at, a.zone.multicluster, a.zonal)
	m := a.find(a.store, &n, a.zone.multicluster)
	if m.kind == aliasMatch {
		return a.follow(m.svc)
	}
	return a.records(a.q.Name(), &n, m)
}

// records writes the records of m, which is what there is at n, to owner. All kinds but aliases are its.
func (a *answer) records(owner []byte, n *name, m match) result {
	typ := a.q.Type()
	switch m.kind {
	case nothing:
		return nxDomain
	case versionMatch:
		if typ != wire.TypeTXT {
			return nxDomain // as CoreDNS 1.14.7 answers
		}
		a.w.TXT(wire.Answer, owner, wire.ClassIN, versionTTL, DNSSchemaVersion)
		return hit
	case serversMatch:
		for _, s := range a.nameservers() {
			a.addresses(owner, s.addrs)
		}
	case podMatch:
		if isType(m.addr, typ) {
			a.w.Addr(wire.Answer, owner, a.ttl, m.addr)
		}
	case clusterMatch:
		if typ == wire.TypeSRV {
			a.clusterSRV(n, m.svc)
		} else {
			a.addresses(owner, m.svc.ClusterIPs())
		}
	case endsMatch:
		return a.ends(owner, n)
	}
	return a.any()
}

// versionTTL is the TTL of what only an upgrade changes, in seconds.
const versionTTL = 28800

// any is hit or noData, as there are records or none.
func (a *answer) any() result {
	if a.w.Count(wire.Answer) > 0 {
		return hit
	}
	return noData
}

// settle completes the reply for a result, and says what is to be done with it.
func (a *answer) settle(r result) result {
	switch r {
	case noData:
		a.soa(wire.Authority)
		return hit
	case nxDomain:
		switch {
		case !a.synced: // it may well exist
			a.w.SetRcode(wire.ServFail)
		case a.passesOn(a.q.Lower()):
			return pass
		default:
			a.w.SetRcode(wire.NXDomain)
		}
		a.soa(wire.Authority)
		return hit
	case refuse:
		a.w.Fail(wire.Refused, nil)
		return hit
	}
	return r
}

// apex answers for the zone's own name.
func (a *answer) apex() result {
	switch a.q.Type() {
	case wire.TypeSOA:
		a.soa(wire.Answer)
	case wire.TypeNS:
		a.apexNS()
	}
	return a.any()
}
