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
	External               // an alias leads to a name that the zone has nothing at; see Answerer.Target
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
	stream  bool   // the reply may have any length
	pointer uint16 // to the origin in the message, 0 if no pointer may lead to where it stands
	asked   bool   // it stands in the question's name as it is
	whole   bool   // records are written with their names in full, for others to shorten: a reply that is too long else
	alone   bool   // there is nobody to ask for what the zone does not have

	name     []byte   // what is looked up now
	names    [][]byte // what was looked up and was an alias
	dnames   []Node   // whose DNAME records are in the answer
	proofs   []Node   // whose NSEC or NSEC3 records go into the authority section
	targets  []Node   // whose addresses are in the additional section, the first fewTargets
	wildcard Node

	manyTargets map[*byte]struct{} // all of them, by where they begin, once there are more than fewTargets

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

// Release lets go of the zone, but for the pieces of it that the last answer had nodes in: an Answerer that waits for
// its next question does not keep a version in memory that was replaced meanwhile.
func (a *Answerer) Release() {
	a.z = nil
	clear(a.manyTargets)
}

// Answer answers q, whose name is in z, into w. The reply is complete, with AA and its
// rcode, but if the result is External: then the caller adds what Target has, and calls
// End, or, if there is nobody to ask, Alone. Nothing is allocated.
func (a *Answerer) Answer(z *Zone, w *wire.Reply, q *wire.Query) Result {
	a.whole = false
	r := a.answer(z, w, q)
	if w.Full() && a.stream {
		a.whole = true
		r = a.answer(z, w, q)
	}
	return r
}

func (a *Answerer) answer(z *Zone, w *wire.Reply, q *wire.Query) Result {
	w.Begin(q)
	a.z, a.w, a.qtype, a.do, a.stream = z, w, q.Type(), q.DO(), q.Stream()
	a.pointer = w.Pointer(z.origin)
	a.asked = a.pointer != 0
	a.wildcard, a.Target, a.alone = nil, nil, false
	a.name = q.Lower()
	a.names, a.dnames, a.proofs, a.targets = a.nameRoom[:0], a.dnameRoom[:0], a.proofRoom[:0], a.targets[:0]
	if len(a.manyTargets) > 0 {
		clear(a.manyTargets)
	}
	return a.chase(a.found(z.find(a.name, q.Hash())))
}

// found writes what stands where one name was looked up (RFC 1034 §4.3.2 step 3) to the answer section.
func (a *Answerer) found(m Match) Result {
	switch m.Kind {
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
		return NoData // the name is made, and no name of the zone
	}
	a.proveExpansion(a.name, source)
	return r
}

// data answers with a node's CNAME record, or else with what it has of the type.
func (a *Answerer) data(n Node) Result {
	alias := n.flags()&hasCNAME != 0
	if alias && !a.beside(n) {
		return a.alias(n)
	}
	switch a.qtype {
	case wire.TypeRRSIG:
		if a.signatures(n) {
			return Hit
		}
	case wire.TypeANY:
		if a.all(n) {
			return Hit
		}
	default:
		if set := n.Set(a.qtype); set != nil {
			if a.qtype != wire.TypeDNAME || !a.substituted(n) { // the way may have led through it
				a.put(wire.Answer, a.owner(), set)
			}
			return Hit
		}
	}
	switch {
	case alias:
		return a.alias(n)
	case n.Empty():
		return Empty
	}
	return NoData
}

// beside reports whether the type asked for is looked for though the node has a CNAME record: the CNAME itself,
// what a signed zone has beside each (RFC 4035 §2.5), and what makes an apex; or whether all are.
func (a *Answerer) beside(n Node) bool {
	switch a.qtype {
	case wire.TypeCNAME, wire.TypeRRSIG, typeNSEC, wire.TypeANY:
		return true
	case wire.TypeSOA, wire.TypeNS:
		return len(n.prefix()) == 0
	}
	return false
}

// all answers with what a node has, whatever its type: with one RRset, or over a stream with all of them and their
// signatures (RFC 8482 §4.1). It reports whether there is anything.
func (a *Answerer) all(n Node) bool {
	o := a.owner()
	for set := range n.Sets() {
		if !a.stream {
			a.put(wire.Answer, o, set)
			return true
		}
		a.putSet(wire.Answer, o, set)
		if sigs := set.Signatures(); sigs != nil {
			a.putSet(wire.Answer, o, sigs)
		}
	}
	return !n.Empty()
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
	case Referral:
		a.putProofs()
	case TooLong:
		a.w.SetRcode(rcodeYXDomain)
		a.putProofs()
	case Broken:
		a.w.SetRcode(wire.ServFail)
	}
}

// End completes the reply after the target of an alias was looked up elsewhere: r is Hit, NoData, NXDomain or Referral,
// as the target was. Its records are in the answer section by now; and so is in the authority section, if that is
// known, what its zone says of a name or type that does not exist, or of a cut.
func (a *Answerer) End(r Result) { a.finish(r) }

// authorityNS adds the apex' NS set, but to the answer that is made of it.
func (a *Answerer) authorityNS() {
	if (a.qtype == wire.TypeNS || a.qtype == wire.TypeANY) && string(a.name) == string(a.z.origin) {
		return
	}
	if ns := a.z.apex.Set(wire.TypeNS); ns != nil {
		a.put(wire.Authority, a.nodeOwner(a.z.apex), ns)
	}
}

// negative adds the SOA record that says how long the denial holds (RFC 2308 §3), and what proves it. A zone to which
// aliases led has said so for itself.
func (a *Answerer) negative() {
	if a.w.Count(wire.Authority) == 0 {
		from := len(a.w.Recs())
		a.put(wire.Authority, a.nodeOwner(a.z.apex), a.z.apex.Set(wire.TypeSOA))
		for i := from; i < len(a.w.Recs()); i++ {
			a.w.SetTTL(i, min(a.z.soa.ttl, a.z.soa.minimum))
		}
	}
	a.putProofs()
}
