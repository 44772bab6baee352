package zone

import (
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// owner is the name that is looked up, as an owner of records.
func (a *Answerer) owner() wire.Owner { return a.ownerOf(a.name) }

// ownerOf is a lower name in the zone as an owner.
func (a *Answerer) ownerOf(name []byte) wire.Owner {
	if o := a.w.QuestionOwner(); string(name) == string(a.w.Bytes()[wire.HeaderLen:wire.HeaderLen+o.Len]) {
		return o
	}
	return a.relative(name[:len(name)-len(a.z.origin)])
}

// nodeOwner is a node's name as an owner.
func (a *Answerer) nodeOwner(n Node) wire.Owner {
	o := a.w.QuestionOwner()
	p := n.prefix()
	q := a.w.Bytes()[wire.HeaderLen : wire.HeaderLen+o.Len]
	if a.pointer != 0 && len(p)+len(a.z.origin) == len(q) && string(q[:len(p)]) == string(p) {
		return o
	}
	return a.relative(p)
}

// relative is a prefix and the origin as an owner. It holds until the next call.
func (a *Answerer) relative(prefix []byte) wire.Owner {
	o := wire.Owner{Prefix: prefix, Pointer: a.pointer, Len: len(prefix) + len(a.z.origin)}
	if a.pointer == 0 { // the question is written in another case: names stand in full
		o.Prefix = append(append(a.ownerBuf[:0], prefix...), a.z.origin...)
	}
	return o
}

// put writes an RRset.
func (a *Answerer) put(s wire.Section, o wire.Owner, set RRset) {
	typ := set.Type()
	again := o
	for r := set.Records(); len(r) > 0; r = r.Next() {
		data, fix := r.data()
		if len(fix) > 0 && a.pointer == 0 {
			a.rdataBuf = r.appendRData(a.rdataBuf[:0], a.z.origin)
			data, fix = a.rdataBuf, nil
		}
		if !a.w.Relative(s, again, typ, r.TTL(), data, fix, a.pointer, r.plain()) {
			return
		}
		if !wire.Movable(typ) {
			again = o.At(a.w.Recs()[len(a.w.Recs())-1])
		}
	}
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
	target, ok := wire.AppendNameAt(buf[:0], a.w.Bytes(), int(rec.TTL)+6+offset)
	if !ok {
		return
	}
	wire.Lower(target, target)
	if !wire.Below(target, a.z.origin) || cut != nil && wire.Below(target, cut) != inside {
		return
	}
	n, ok := a.z.node(target, wire.Hash(target))
	if !ok || a.hasAddresses(target) {
		return
	}
	for _, typ := range [...]uint16{wire.TypeA, wire.TypeAAAA} {
		if set := n.Set(typ); set != nil {
			a.put(wire.Additional, a.nodeOwner(n), set)
		}
	}
}

// hasAddresses reports whether the additional section has a name's addresses already.
func (a *Answerer) hasAddresses(name []byte) bool {
	for _, r := range a.w.Section(wire.Additional) {
		var buf [wire.MaxName + 1]byte
		owner, ok := wire.AppendNameAt(buf[:0], a.w.Bytes(), int(r.Off))
		if ok && wire.EqualFold(owner, name) {
			return true
		}
	}
	return false
}
