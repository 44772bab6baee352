package zone

import (
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// owner is the name that is looked up, as an owner of records.
func (a *Answerer) owner() wire.Owner { return a.ownerOf(a.name) }

// ownerOf is a lower name in the zone as an owner.
func (a *Answerer) ownerOf(name []byte) wire.Owner {
	o := a.w.QuestionOwner()
	q := a.w.Bytes()[wire.HeaderLen : wire.HeaderLen+o.Len]
	if string(name) == string(q) || a.w.FoldsOwners() && wire.EqualFold(name, q) {
		return o
	}
	return a.relative(name[:len(name)-len(a.z.origin)])
}

// nodeOwner is a node's name as an owner.
func (a *Answerer) nodeOwner(n Node) wire.Owner {
	o := a.w.QuestionOwner()
	p := n.prefix()
	q := a.w.Bytes()[wire.HeaderLen : wire.HeaderLen+o.Len]
	if len(p)+len(a.z.origin) == len(q) {
		same := a.asked && string(q[:len(p)]) == string(p)
		if same || a.w.FoldsOwners() && wire.EqualFold(q[:len(p)], p) && wire.EqualFold(q[len(p):], a.z.origin) {
			return o
		}
	}
	return a.relative(p)
}

// relative is a prefix and the origin as an owner. It holds until the next call.
func (a *Answerer) relative(prefix []byte) wire.Owner {
	o := wire.Owner{Prefix: prefix, Pointer: a.pointer, Len: len(prefix) + len(a.z.origin)}
	if a.pointer == 0 || a.whole { // the question is written in another case, and nothing can be pointed to so far
		o.Pointer = 0
		o.Prefix = append(append(a.ownerBuf[:0], prefix...), a.z.origin...)
	}
	return o
}

// put writes an RRset, with its signatures for those who ask for them.
func (a *Answerer) put(s wire.Section, o wire.Owner, set RRset) {
	o = a.putSet(s, o, set)
	if a.do && set.signed() {
		a.putSet(s, o, set.Signatures())
	}
}

// putSet writes an RRset and returns its owner as further records may give it.
func (a *Answerer) putSet(s wire.Section, o wire.Owner, set RRset) wire.Owner {
	typ := set.Type()
	if a.whole {
		for r := set.Records(); len(r) > 0; r = r.Next() {
			a.rdataBuf = r.AppendRData(a.rdataBuf[:0], a.z.origin)
			if !a.w.Whole(s, o, typ, r.TTL(), a.rdataBuf) {
				break
			}
		}
		return o
	}
	again := o
	for r := set.Records(); len(r) > 0; r = r.Next() {
		data, fix := r.data()
		full := 0 // octets of the RDATA before the origin, if that is to be written there in full
		pointer := a.pointer
		if pointer == 0 && o.Pointer == 0 && a.w.Anchors(typ) {
			pointer = a.originAt(len(a.w.Bytes()), o) // names in the RDATA may point to the record's own owner
		}
		if len(fix) > 0 && pointer == 0 {
			full = int(u16(fix))
			a.rdataBuf = r.AppendRData(a.rdataBuf[:0], a.z.origin)
			data, fix = a.rdataBuf, nil
		}
		if !a.w.Relative(s, again, typ, r.TTL(), data, fix, pointer, r.plain()) {
			return o
		}
		if a.w.Anchors(typ) {
			rec := a.w.Recs()[len(a.w.Recs())-1]
			again = again.At(rec) // the first one's: clients do not follow a pointer for each
			a.pointTo(rec, o)
			if full > 0 && a.pointer == 0 && typ == wire.TypeCNAME { // its target is an owner in a moment
				a.pointer = pointerTo(len(a.w.Bytes())-len(data)+full, len(a.z.origin))
			}
		}
	}
	return again
}

// pointTo makes further names point to the origin in the owner of a record, if that is the first one that they can
// point to. It is the message's first record: its names stay where they are if others add records that make the message
// too long, and names become shorter.
func (a *Answerer) pointTo(rec wire.Rec, o wire.Owner) {
	if a.pointer == 0 && o.Pointer == 0 {
		a.pointer = a.originAt(int(rec.Off), o)
	}
}

// originAt is a pointer to the origin in the owner o, written in full, of a record that begins at off. It is 0 if no
// pointer reaches so far.
func (a *Answerer) originAt(off int, o wire.Owner) uint16 {
	return pointerTo(off+o.Len-len(a.z.origin), len(a.z.origin))
}

// pointerTo is a pointer to a name of n octets that begins at off, 0 if none reaches so far.
func pointerTo(off, n int) uint16 {
	name, ok := wire.OwnerAt(off, n)
	if !ok {
		return 0
	}
	return name.Pointer
}

// putProofs writes the NSEC or NSEC3 records that were noted.
func (a *Answerer) putProofs() {
	typ := uint16(typeNSEC)
	if a.z.nsec3 != nil {
		typ = typeNSEC3
	}
	there := len(a.w.Section(wire.Authority)) // of which some may be proofs that came from elsewhere
	for _, n := range a.proofs {
		if set := n.Set(typ); set != nil && !a.has(a.w.Section(wire.Authority)[:there], n, typ) {
			a.put(wire.Authority, a.nodeOwner(n), set)
		}
	}
	a.proofs = a.proofs[:0]
}

// has reports whether a node's set of a type is among records of the message.
func (a *Answerer) has(recs []wire.Rec, n Node, typ uint16) bool {
	var buf [wire.MaxName + 1]byte
	for _, r := range recs {
		if r.Type != typ {
			continue
		}
		owner, ok := wire.AppendNameAt(buf[:0], a.w.Bytes(), int(r.Off))
		if wire.Lower(owner, owner); ok && len(owner) == len(n.prefix())+len(a.z.origin) && string(owner[:len(n.prefix())]) == string(n.prefix()) && wire.Below(owner, a.z.origin) {
			return true
		}
	}
	return false
}

// additional adds the addresses of the names that the answer's records lead to, as far as the
// zone has them: of the apex' NS records, of MX, SRV, SVCB and HTTPS (RFC 1034 §4.3.2 step 6).
func (a *Answerer) additional() {
	if targetOffset(a.qtype) < 0 || a.qtype == wire.TypeNS && string(a.name) != string(a.z.origin) {
		return
	}
	answers := a.w.Count(wire.Answer)
	for i := range answers {
		if a.w.Recs()[i].Type == a.qtype {
			a.addressesOf(i, nil, false)
		}
	}
}

// glue adds the addresses of a referral's servers: first of those in the domain that is
// delegated, without which nobody can get there, then of others of the zone.
func (a *Answerer) glue(ns RRset, cut []byte) {
	first := a.w.Count(wire.Answer)
	for i := first; i < first+ns.Len() && i < len(a.w.Recs()); i++ {
		a.addressesOf(i, cut, true)
	}
	for i := first; i < first+ns.Len() && i < len(a.w.Recs()); i++ {
		a.addressesOf(i, cut, false)
	}
}

// addressesOf adds the addresses of the target of record i of the reply, if there are some in
// the zone and are not there yet. With a cut, only targets count that lie inside its domain, or outside.
func (a *Answerer) addressesOf(i int, cut []byte, inside bool) {
	rec := a.w.Recs()[i]
	offset := targetOffset(rec.Type)
	var buf [wire.MaxName + 1]byte
	at := int(rec.TTL) + 6 + offset
	target, ok := wire.AppendNameAt(buf[:0], a.w.Bytes(), at)
	if !ok {
		return
	}
	wire.Lower(target, target)
	if !wire.Below(target, a.z.origin) || cut != nil && wire.Below(target, cut) != inside {
		return
	}
	n, ok := a.z.node(target, wire.Hash(target))
	if !ok || a.hasAddresses(n) {
		return
	}
	owner := a.nodeOwner(n)
	if o, ok := wire.OwnerAt(at, len(target)); ok && !a.whole && rec.Type == wire.TypeNS && len(owner.Prefix) > 0 {
		owner = o // which is in lower case, and stays where it is
	}
	for _, typ := range [...]uint16{wire.TypeA, wire.TypeAAAA} {
		if set := n.Set(typ); set != nil {
			a.put(wire.Additional, owner, set)
		}
	}
}

// fewTargets is up to how many targets are compared one by one.
const fewTargets = 16

// hasAddresses reports whether a node's addresses are in the additional section already, and notes that they are now.
func (a *Answerer) hasAddresses(n Node) bool {
	if len(a.targets) < fewTargets {
		for _, o := range a.targets {
			if &o[0] == &n[0] {
				return true
			}
		}
		a.targets = append(a.targets, n)
		return false
	}
	if len(a.manyTargets) == 0 {
		if a.manyTargets == nil {
			a.manyTargets = map[*byte]struct{}{}
		}
		for _, o := range a.targets {
			a.manyTargets[&o[0]] = struct{}{}
		}
	}
	before := len(a.manyTargets)
	a.manyTargets[&n[0]] = struct{}{}
	return len(a.manyTargets) == before
}
