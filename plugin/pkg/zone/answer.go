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

// follow is the Result of one look that found an alias; Target tells where it leads.
const follow Result = 255

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
	pointer uint16 // to the origin in the message, 0 if no pointer may lead to where it stands
	asked   bool   // it stands in the question's name as it is

	name     []byte   // what is looked up now
	names    [][]byte // what was looked up and was an alias
	dnames   []Node   // whose DNAME records are in the answer
	proofs   []Node   // whose NSEC or NSEC3 records go into the authority section
	targets  []Node   // whose addresses are in the additional section
	wildcard Node

	// Target is where the alias leads if the result is External. It holds until the next question.
	Target []byte

	nameRoom  [maxAliases][]byte
	dnameRoom [maxAliases]Node
	proofRoom [maxProofs]Node
	buf       [maxAliases + 1][wire.MaxName + 1]byte // targets
	ownerBuf  [wire.MaxName + 1]byte
	cutBuf    [wire.MaxName + 1]byte
	starBuf   [wire.MaxName + 1]byte
	rdataBuf  []byte
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
	a.asked = a.pointer != 0
	a.wildcard, a.Target = nil, nil
	a.name = q.Lower()
	a.names, a.dnames, a.proofs, a.targets = a.nameRoom[:0], a.dnameRoom[:0], a.proofRoom[:0], a.targets[:0]

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

// look looks one name up (RFC 1034 §4.3.2 step 3) and writes what it finds to the answer section.
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
		return a.synthesize(m.Node)
	default:
		a.proveMissing(a.name, m.Node)
		return NXDomain
	}
}

// exact answers from the node of the name (step 3a).
func (a *Answerer) exact(n Node) Result {
	r := a.data(n)
	if r == NoData || r == Empty {
		a.proveNoData(n, a.name)
	}
	return r
}

// synthesize answers from the source of synthesis in place of the name (step 3c, RFC 4592 §3.3.3).
func (a *Answerer) synthesize(source Node) Result {
	a.wildcard = source
	r := a.data(source)
	if r == NoData || r == Empty {
		a.proveWildcardNoData(a.name, source)
	} else {
		a.proveExpansion(a.name, source)
	}
	return r
}

// data answers with a node's CNAME record, or else with what it has of the type.
func (a *Answerer) data(n Node) Result {
	alias := n.flags()&hasCNAME != 0
	if alias && !a.beside(n) {
		return a.alias(n)
	}
	if a.qtype == wire.TypeRRSIG {
		if a.signatures(n) {
			return Hit
		}
	} else if set := n.Set(a.qtype); set != nil {
		a.put(wire.Answer, a.owner(), set)
		return Hit
	}
	switch {
	case alias:
		return a.alias(n)
	case n.Empty():
		return Empty
	}
	return NoData
}

// beside reports whether the type asked for is looked for though the node has a CNAME record: the CNAME itself, what a signed zone
// has beside each (RFC 4035 §2.5), and what makes an apex.
func (a *Answerer) beside(n Node) bool {
	switch a.qtype {
	case wire.TypeCNAME, wire.TypeRRSIG, typeNSEC:
		return true
	case wire.TypeSOA, wire.TypeNS:
		return len(n.prefix()) == 0
	}
	return false
}

// alias answers with a node's CNAME record, to be followed.
func (a *Answerer) alias(n Node) Result {
	set := n.Set(wire.TypeCNAME)
	a.put(wire.Answer, a.owner(), set)
	a.Target = set.Records().AppendRData(a.room(), a.z.origin)
	return follow
}

// signatures answers with all signatures of a node; it reports whether there are some.
func (a *Answerer) signatures(n Node) bool {
	found := false
	b, count := n.sets()
	for ; count > 0; count-- {
		set := RRset(b)
		if set.Type() == wire.TypeRRSIG {
			a.putSet(wire.Answer, a.owner(), set)
			found = true
		} else if sigs := set.Signatures(); sigs != nil {
			a.putSet(wire.Answer, a.owner(), sigs)
			found = true
		}
		b = set.behind()
	}
	return found
}

// substitute answers with a DNAME and the CNAME that it makes (RFC 6672 §3.2).
func (a *Answerer) substitute(n Node) Result {
	set := n.Set(wire.TypeDNAME)
	if !a.substituted(n) {
		a.put(wire.Answer, a.nodeOwner(n), set)
	}
	above := len(a.name) - len(n.prefix()) - len(a.z.origin)
	r := set.Records()
	if above+r.plain() > wire.MaxName {
		return TooLong
	}
	target := r.AppendRData(append(a.room(), a.name[:above]...), a.z.origin)
	wire.Lower(target, target)
	if string(target) == string(a.name) {
		return Broken
	}
	a.w.TargetOf(wire.Answer, a.owner(), wire.TypeCNAME, r.TTL(), target)
	if a.qtype == wire.TypeCNAME {
		return Hit
	}
	a.Target = target
	return follow
}

// substituted reports whether a DNAME is in the answer already, and notes that it is now.
func (a *Answerer) substituted(n Node) bool {
	for _, d := range a.dnames {
		if &d[0] == &n[0] {
			return true
		}
	}
	a.dnames = append(a.dnames, n)
	return false
}

// referral writes the delegation of a cut (step 3b): its NS set; for those who ask for it its DS set, or the
// proof that it has none; and the addresses of the servers that the zone has.
func (a *Answerer) referral(n Node) Result {
	o := a.nodeOwner(n)
	ns := n.Set(wire.TypeNS)
	a.put(wire.Authority, o, ns)
	cut := append(append(a.cutBuf[:0], n.prefix()...), a.z.origin...)
	if a.do {
		if ds := n.Set(typeDS); ds != nil {
			a.put(wire.Authority, o, ds)
		} else {
			a.proveNoData(n, cut)
		}
		a.putProofs()
	}
	a.glue(ns, cut)
	return Referral
}

// finish writes authority and additional, and the header's bits.
func (a *Answerer) finish(r Result) {
	a.w.SetFlag(wire.FlagAA, r != Referral || a.w.Count(wire.Answer) > 0) // the first owner decides (RFC 1035 §4.1.1)
	switch r {
	case Hit:
		a.authorityNS()
		a.putProofs()
		a.additional()
	case NoData, Empty:
		a.negative()
	case NXDomain:
		a.w.SetRcode(wire.NXDomain)
		a.negative()
	case TooLong:
		a.w.SetRcode(rcodeYXDomain)
		a.putProofs()
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

// negative adds the SOA record that says how long the denial holds (RFC 2308 §3), and what proves it.
func (a *Answerer) negative() {
	from := len(a.w.Recs())
	a.put(wire.Authority, a.nodeOwner(a.z.apex), a.z.apex.Set(wire.TypeSOA))
	for i := from; i < len(a.w.Recs()); i++ {
		a.w.SetTTL(i, min(a.z.soa.ttl, a.z.soa.minimum))
	}
	a.putProofs()
}
