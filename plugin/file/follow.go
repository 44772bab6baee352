package file

import (
	"context"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// An alias may lead to a name that its zone has nothing at: out of the zone, or to a name in it that somebody else
// serves, a zone below this one for example, or a plugin before it in the chain. That is asked of the server itself, as
// a query of its own, which may come back here: then the zone says what it has to say of the name.

// follow looks up, by way of the whole server, where an alias leads, and completes the reply.
func (z *Zone) follow(ctx context.Context, a *zone.Answerer, w *wire.Reply, qtype uint16, state request.Request) zone.Result {
	ctx, circle := onTheWay(ctx, a)
	if circle {
		a.End(zone.Hit) // what there is of it
		return zone.Hit
	}
	ctx, ok := upstream.Again(ctx, upstream.MaxLoops)
	if !ok {
		a.End(zone.Broken)
		return zone.Broken
	}
	reply, err := z.Upstream.Lookup(ctx, state, wire.Text(a.Target), qtype)
	if err != nil { // there is no server
		return a.Alone()
	}
	if reply == nil {
		a.End(zone.Hit) // the aliases, as far as they are known
		return zone.Hit
	}
	return carry(a, w, reply, qtype)
}

// carry completes the reply with what was answered for the alias' target.
func carry(a *zone.Answerer, w *wire.Reply, reply *dns.Msg, qtype uint16) zone.Result {
	result := resultIn(reply, qtype)
	add := func(s wire.Section, rrs []dns.RR) {
		for _, rr := range rrs {
			if err := w.RR(s, rr); err != nil {
				result = zone.Broken
			}
		}
	}
	add(wire.Answer, slices.DeleteFunc(slices.Clone(reply.Answer), func(rr dns.RR) bool { return passed(a, rr) }))
	w.SetFlag(wire.FlagTC, reply.Truncated)
	switch result {
	case zone.Hit:
		add(wire.Authority, proofsIn(reply.Ns)) // of a wildcard there
	case zone.NoData, zone.NXDomain:
		if hasType(reply.Ns, dns.TypeSOA) { // the denial is that of the zone in which the last name lies (RFC 2308 §2.1)
			add(wire.Authority, reply.Ns)
		}
	case zone.Referral:
		add(wire.Authority, reply.Ns)
	}
	a.End(result)
	if result == zone.Referral {
		add(wire.Additional, reply.Extra)
	}
	return result
}

// passed reports whether a record is that of an alias that is in the answer, or its signature: what was asked for may have led
// through the same alias (RFC 2181 §5).
func passed(a *zone.Answerer, rr dns.RR) bool {
	if t := typeOf(rr); t != dns.TypeCNAME && t != dns.TypeDNAME {
		return false
	}
	name, err := wire.LowerName(rr.Header().Name)
	return err == nil && a.Passed(name, typeOf(rr))
}

// typeOf is a record's type, and for a signature the type that it covers.
func typeOf(rr dns.RR) uint16 {
	if sig, ok := rr.(*dns.RRSIG); ok {
		return sig.TypeCovered
	}
	return rr.Header().Rrtype
}

// resultIn is what a reply says of the target that it was asked for.
func resultIn(reply *dns.Msg, qtype uint16) zone.Result {
	switch {
	case reply.Rcode == dns.RcodeNameError:
		return zone.NXDomain
	case reply.Rcode == dns.RcodeServerFailure:
		return zone.Broken
	case reply.Rcode != dns.RcodeSuccess, hasType(reply.Answer, qtype):
		return zone.Hit // for other return codes the aliases, as far as they are known
	case hasType(reply.Ns, dns.TypeSOA):
		return zone.NoData
	case refers(reply):
		return zone.Referral
	case len(reply.Answer) > 0:
		return zone.Hit
	}
	return zone.NoData
}

// refers reports whether the NS records of a reply are those of a zone cut. With aliases before them they may be those of the
// apex as well, which lies above the last alias, too.
func refers(reply *dns.Msg) bool {
	i := slices.IndexFunc(reply.Ns, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeNS })
	if i < 0 || len(reply.Answer) == 0 {
		return i >= 0
	}
	owner := reply.Ns[i].Header().Name
	for _, rr := range slices.Backward(reply.Answer) {
		if alias, ok := rr.(*dns.CNAME); ok {
			return dns.IsSubDomain(owner, alias.Target) && !dns.IsSubDomain(owner, alias.Hdr.Name)
		}
	}
	return false
}

func hasType(rrs []dns.RR, typ uint16) bool {
	return slices.ContainsFunc(rrs, func(rr dns.RR) bool { return rr.Header().Rrtype == typ })
}

// proofsIn is the NSEC and NSEC3 records among others, with their signatures.
func proofsIn(rrs []dns.RR) (proofs []dns.RR) {
	for _, rr := range rrs {
		if typ := typeOf(rr); typ == dns.TypeNSEC || typ == dns.TypeNSEC3 {
			proofs = append(proofs, rr)
		}
	}
	return proofs
}

// way is the names that were looked up on the way to a question of follow's: aliases, each of which leads to the next.
type way struct {
	names []string // in wire form, lower
	up    *way
}

type wayKey struct{}

// onTheWay is ctx for a question for the target of an alias; circle tells that the way has led there before.
func onTheWay(ctx context.Context, a *zone.Answerer) (on context.Context, circle bool) {
	up, _ := ctx.Value(wayKey{}).(*way)
	w := &way{up: up}
	for _, name := range a.Way() {
		w.names = append(w.names, string(name))
	}
	for on := w; on != nil; on = on.up {
		circle = circle || slices.Contains(on.names, string(a.Target))
	}
	return context.WithValue(ctx, wayKey{}, w), circle
}
