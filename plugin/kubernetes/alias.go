package kubernetes

import (
	"context"
	"errors"
	"sync"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// maxAliases is how many aliases may lead from one to the other.
const maxAliases = 11

// follow answers for a service that is an alias (RFC 1034 §3.6.2). A target within the zone is looked up here, and an
// alias whose target has nothing to say is left out. If the aliases lead out of the zone, the result is outside; if
// they lead to a name that the cluster does not have, elsewhere.
func (a *answer) follow(svc *store.Service) result {
	switch a.q.Type() {
	case wire.TypeCNAME, wire.TypeA, wire.TypeAAAA, wire.TypeTXT:
	default:
		return noData
	}
	names := aliasNames.Get().(*[2]aliasName)
	defer aliasNames.Put(names)
	owner := a.q.Name()
	for hop := range maxAliases {
		to := &names[hop%2]
		if !to.set(svc) {
			break
		}
		a.w.Target(wire.Answer, owner, wire.TypeCNAME, a.ttl, to.spelled())
		if a.q.Type() == wire.TypeCNAME {
			return hit
		}
		if !wire.Below(to.lowered(), a.zone.name) {
			a.target = wire.Text(to.spelled())
			return outside
		}
		n, m := a.lookTarget(to)
		if m.kind == aliasMatch {
			svc, owner = m.svc, to.spelled()
			continue
		}
		before := a.w.Count(wire.Answer)
		switch r := a.records(to.spelled(), &n, m); {
		case a.w.Count(wire.Answer) > before:
			return hit
		case r == nxDomain && a.synced:
			a.target = wire.Text(to.spelled())
			return elsewhere
		}
		break
	}
	a.begin()
	if !a.synced {
		return nxDomain // which becomes SERVFAIL
	}
	return noData
}

// lookTarget finds what there is at a target within the zone.
func (a *answer) lookTarget(to *aliasName) (n name, m match) {
	at := to.n - len(a.zone.name)
	if at == 0 {
		return n, match{kind: bareMatch}
	}
	n = parse(to.lowered(), at, a.zone.multicluster, a.zonal)
	return n, a.find(a.store, &n, a.zone.multicluster)
}

// aliasNames has pairs of names: the owner's and the target's, taking turns. They would be too much for a stack.
var aliasNames = sync.Pool{New: func() any { return new([2]aliasName) }}

// aliasName is a target in wire form.
type aliasName struct {
	n            int
	asked, lower [wire.MaxName + 1]byte
}

// set reads the target of a service, and reports whether it is a name.
func (to *aliasName) set(svc *store.Service) bool {
	text, _ := svc.ExternalName()
	b, err := wire.AppendName(to.asked[:0], text)
	if err != nil || text == "" {
		return false
	}
	to.n = len(b)
	wire.Lower(to.lower[:to.n], b)
	return true
}

func (to *aliasName) spelled() []byte { return to.asked[:to.n] }
func (to *aliasName) lowered() []byte { return to.lower[:to.n] }

// followOut completes the reply whose last alias leads to target, by asking the server. If that cannot
// be asked, the aliases go, too; and so they do if there is nothing at a target within the zone.
func (k *Kubernetes) followOut(ctx context.Context, adapter *plugin.WireAdapter, state request.Request, target string, within bool) {
	m, err := k.Lookup(ctx, state, target, adapter.Query.Type())
	if within && m != nil && (m.Rcode != dns.RcodeSuccess || len(m.Answer) == 0) {
		m = nil
	}
	if err == nil && m != nil {
		for _, rr := range m.Answer {
			if err = adapter.Reply.RR(wire.Answer, rr); err != nil {
				break
			}
		}
		adapter.Reply.SetFlag(wire.FlagTC, m.Truncated)
	}
	if err != nil || m == nil {
		a := answer{w: &adapter.Reply, q: &adapter.Query}
		if a.start(k) {
			a.settle(noData)
		}
	}
}

var (
	errLoop       = errors.New("too many aliases lead here again")
	errNoUpstream = errors.New("no upstream to ask")
)

// Lookup implements plugin.ServiceBackend: it asks the server for a name that is not the cluster's.
func (k *Kubernetes) Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error) {
	if k.Upstream == nil {
		return nil, errNoUpstream
	}
	ctx, ok := upstream.Again(ctx, upstream.MaxLoops)
	if !ok {
		return nil, errLoop
	}
	return k.Upstream.Lookup(ctx, state, name, typ)
}
