package tree

import (
	"maps"
	"slices"

	"github.com/miekg/dns"
)

// Elem is the records of one name.
type Elem struct {
	name  string // as it was first inserted
	key   []byte
	sets  map[uint16][]dns.RR // by type; what is in a slice is never changed, and others get it without room to append
	guard *guard
}

// NewElem is an Elem of records that have the same owner, in no tree. There must be one at least.
func NewElem(rrs ...dns.RR) *Elem {
	name := rrs[0].Header().Name
	e := &Elem{name: name, key: keyOf(name), sets: map[uint16][]dns.RR{}, guard: new(guard)}
	for _, rr := range rrs {
		e.insert(rr)
	}
	return e
}

// Name is the owner of the records.
func (e *Elem) Name() string { return e.name }

// Type is the records of a type, nil if there are none.
func (e *Elem) Type(qtype uint16) []dns.RR {
	e.guard.mu.RLock()
	defer e.guard.mu.RUnlock()
	return slices.Clip(e.sets[qtype])
}

// TypeForWildcard is the records of a type as copies whose owner is qname: what a wildcard gives for it.
func (e *Elem) TypeForWildcard(qtype uint16, qname string) []dns.RR {
	rrs := slices.Clone(e.Type(qtype))
	for i := range rrs {
		rrs[i] = dns.Copy(rrs[i])
		rrs[i].Header().Name = qname
	}
	return rrs
}

// Types is the types of the records, in ascending order.
func (e *Elem) Types() []uint16 {
	e.guard.mu.RLock()
	defer e.guard.mu.RUnlock()
	return slices.Sorted(maps.Keys(e.sets))
}

// All is all records, by type in ascending order.
func (e *Elem) All() []dns.RR {
	e.guard.mu.RLock()
	defer e.guard.mu.RUnlock()
	var rrs []dns.RR
	for _, typ := range slices.Sorted(maps.Keys(e.sets)) {
		rrs = append(rrs, e.sets[typ]...)
	}
	return rrs
}

// Insert adds a record. Its owner must be the name.
func (e *Elem) Insert(rr dns.RR) {
	e.guard.mu.Lock()
	defer e.guard.mu.Unlock()
	e.insert(rr)
	e.guard.changes.Add(1)
}

func (e *Elem) insert(rr dns.RR) {
	typ := rr.Header().Rrtype
	e.sets[typ] = append(e.sets[typ], rr)
}

// Delete takes away all records of rr's type. An Elem without records stays in its tree.
func (e *Elem) Delete(rr dns.RR) {
	e.guard.mu.Lock()
	defer e.guard.mu.Unlock()
	delete(e.sets, rr.Header().Rrtype)
	e.guard.changes.Add(1)
}

// Empty reports whether there are no records.
func (e *Elem) Empty() bool {
	e.guard.mu.RLock()
	defer e.guard.mu.RUnlock()
	return len(e.sets) == 0
}

// snapshot is the records by type as they are now.
func (e *Elem) snapshot() map[uint16][]dns.RR {
	e.guard.mu.RLock()
	defer e.guard.mu.RUnlock()
	sets := make(map[uint16][]dns.RR, len(e.sets))
	for typ, rrs := range e.sets {
		sets[typ] = slices.Clip(rrs)
	}
	return sets
}
