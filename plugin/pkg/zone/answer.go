package zone

import (
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Result is what came of a question.
type Result uint8

const (
	Hit      Result = iota // answered with data
	NoData                 // the name exists, the type does not
	Empty                  // the name is an empty non-terminal
	NXDomain               // the name does not exist
	Referral               // the name is at or below a zone cut
	External               // an alias leads out of the zone; see Answerer.Target
	TooLong                // a DNAME makes a name that is too long (YXDOMAIN)
	Broken                 // the zone's data leads nowhere
)

// maxAliases is how many CNAME and DNAME records are followed for one question.
const maxAliases = 16

// rcodeYXDomain is the return code for names that a DNAME makes too long (RFC 6672 §2.2).
const rcodeYXDomain = 6

// Answerer answers one question from one zone. Its zero value is ready; it may be used again
// for other questions, by one goroutine at a time. It is some kilobytes of buffers, so keep it.
type Answerer struct {
	z       *Zone
	w       *wire.Reply
	qtype   uint16
	do      bool
	pointer uint16 // to the origin in the question's name, 0 if it does not stand there

	name  []byte             // what is looked up now
	names [][]byte           // what was looked up, this name included
	first [maxAliases][]byte // room for names
	buf   [maxAliases + 1][wire.MaxName + 1]byte

	ownerBuf [wire.MaxName + 1]byte
	cutBuf   [wire.MaxName + 1]byte
	rdataBuf []byte
	wildcard Node

	// Target is where the alias leads if the result is External. It holds until the next question.
	Target []byte
}

// Wildcard is the wildcard's name if the answer was made from one, else nil.
func (a *Answerer) Wildcard() []byte {
	if a.wildcard == nil {
		return nil
	}
	return a.wildcard.name(a.z)
}

// Answer answers q, whose name is in z, into w. The reply is complete, with AA and its
// rcode, but if the result is External: then the caller adds what Target has, and calls
// End. Nothing is allocated.
func (a *Answerer) Answer(z *Zone, w *wire.Reply, q *wire.Query) Result {
	w.Begin(q)
	a.z, a.w, a.qtype, a.do = z, w, q.Type(), q.DO()
	a.pointer = w.Pointer(z.origin)
	a.wildcard, a.Target = nil, nil
	a.name, a.names = q.Lower(), a.first[:0]

	r := a.look(q.Hash())
	for r == follow {
		a.names = append(a.names, a.name)
		switch {
		case !wire.Below(a.Target, z.origin):
			r = External
		case a.circle():
			r = Hit // what there is of it
		case len(a.names) == maxAliases:
			r = Broken
		default:
			a.name = a.Target
			r = a.look(wire.Hash(a.name))
		}
	}
	if r != External {
		a.finish(r)
	}
	return r
}

// follow is the Result of one look that found an alias; Target tells where it leads.
const follow Result = 255

// room is memory for the next target.
func (a *Answerer) room() []byte { return a.buf[len(a.names)][:0] }

// circle reports whether the alias leads to a name that was looked up already.
func (a *Answerer) circle() bool {
	for _, name := range a.names {
		if string(name) == string(a.Target) {
			return true
		}
	}
	return false
}

// look looks one name up and writes what it finds to the answer section.
func (a *Answerer) look(hash uint64) Result {
	switch m := a.z.find(a.name, hash); m.Kind {
	case Exists:
		return a.exact(m.Node)
	case BelowCut:
		if a.qtype == typeDS && len(m.Node.prefix())+len(a.z.origin) == len(a.name) {
			return a.exact(m.Node) // the parent's side answers for the cut itself (RFC 4035 §3.1.4.1)
		}
		return a.referral(m.Node)
	case BelowName:
		return a.substitute(m.Node)
	case Wildcard:
		a.wildcard = m.Node
		return a.exact(m.Node)
	}
	return NXDomain
}

// exact answers from the node of the name, or from the source of synthesis in its place.
func (a *Answerer) exact(n Node) Result {
	if set := n.Set(a.qtype); set != nil {
		a.put(wire.Answer, a.owner(), set)
		return Hit
	}
	if n.flags()&hasCNAME != 0 {
		set := n.Set(wire.TypeCNAME)
		a.put(wire.Answer, a.owner(), set)
		a.Target = set.Records().appendRData(a.room(), a.z.origin)
		return follow
	}
	if n.Empty() {
		return Empty
	}
	return NoData
}

// substitute answers with a DNAME and the CNAME that it makes (RFC 6672 §3.2).
func (a *Answerer) substitute(n Node) Result {
	set := n.Set(wire.TypeDNAME)
	a.put(wire.Answer, a.nodeOwner(n), set)
	above := len(a.name) - len(n.prefix()) - len(a.z.origin)
	r := set.Records()
	if above+r.plain() > wire.MaxName {
		return TooLong
	}
	target := r.appendRData(append(a.room(), a.name[:above]...), a.z.origin)
	wire.Lower(target, target)
	if string(target) == string(a.name) {
		return Broken
	}
	o := a.owner()
	a.w.TargetOf(wire.Answer, o, wire.TypeCNAME, r.TTL(), target)
	if a.qtype == wire.TypeCNAME {
		return Hit
	}
	a.Target = target
	return follow
}

// referral writes the delegation of a cut (RFC 1034 §4.3.2 step 3b): its NS set, DS set for those
// who ask for it, and the addresses of the servers that the zone has.
func (a *Answerer) referral(n Node) Result {
	o := a.nodeOwner(n)
	ns := n.Set(wire.TypeNS)
	a.put(wire.Authority, o, ns)
	if a.do {
		if ds := n.Set(typeDS); ds != nil {
			a.put(wire.Authority, o, ds)
		}
	}
	a.glue(ns, append(append(a.cutBuf[:0], n.prefix()...), a.z.origin...))
	return Referral
}

// finish writes authority and additional, and the header's bits.
func (a *Answerer) finish(r Result) {
	a.w.SetFlag(wire.FlagAA, r != Referral || a.w.Count(wire.Answer) > 0) // the first owner decides (RFC 1035 §4.1.1)
	switch r {
	case Hit:
		a.authorityNS()
		a.additional()
	case NoData, Empty:
		a.negative()
	case NXDomain:
		a.w.SetRcode(wire.NXDomain)
		a.negative()
	case TooLong:
		a.w.SetRcode(rcodeYXDomain)
	case Broken:
		a.w.SetRcode(wire.ServFail)
	}
}

// End completes the reply after the target of an alias was looked up elsewhere: r is Hit, NoData or
// NXDomain, as the target was; its records are in the answer section by now.
func (a *Answerer) End(r Result) { a.finish(r) }

// authorityNS adds the apex' NS set, but to the answer that is made of it.
func (a *Answerer) authorityNS() {
	if a.qtype == wire.TypeNS && string(a.name) == string(a.z.origin) {
		return
	}
	if ns := a.z.apex.Set(wire.TypeNS); ns != nil {
		a.put(wire.Authority, a.nodeOwner(a.z.apex), ns)
	}
}

// negative adds the SOA record that says how long the denial holds (RFC 2308 §3).
func (a *Answerer) negative() {
	soa := a.z.apex.Set(wire.TypeSOA)
	from := len(a.w.Recs())
	a.put(wire.Authority, a.nodeOwner(a.z.apex), soa)
	for i := from; i < len(a.w.Recs()); i++ {
		a.w.SetTTL(i, min(a.z.soa.ttl, a.z.soa.minimum))
	}
}
