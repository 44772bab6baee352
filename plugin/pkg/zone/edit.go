package zone

import (
	"encoding/binary"
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Edit is the next version of a zone in the making, out of the one before and what changes: for an incremental
// transfer in (RFC 1995), or another source of changes. It belongs to one goroutine; the zone stays as it is.
//
// Changes count in the order in which they come: a record may be removed, added and removed again.
type Edit struct {
	old     *Zone
	finder  *finder
	build   *Builder // also knows how records are stored
	removed map[string]bool
	touched map[string]bool // prefixes of names that something is removed from
	added   map[string]Record
	order   []string // keys of added
}

// Edit begins an edit of z. warn is as for NewBuilder.
func (z *Zone) Edit(warn func(format string, args ...any)) *Edit {
	e := &Edit{old: z, finder: newFinder(z), build: NewBuilder(z.origin, warn), removed: map[string]bool{}, touched: map[string]bool{}, added: map[string]Record{}}
	e.build.nsec3 = z.nsec3 != nil
	return e
}

// AllowNSEC3 makes the new version take NSEC3 records, as it does if the old one has some.
func (e *Edit) AllowNSEC3() { e.build.AllowNSEC3() }

// KeepCase is as for Builder.
func (e *Edit) KeepCase() { e.build.KeepCase() }

// Remove takes a record away, whatever its TTL. It is an error if the zone does not have it: then the sender speaks of
// another zone than ours, and all of it must be fetched (RFC 1995 §4).
func (e *Edit) Remove(owner []byte, typ uint16, rdata []byte) error {
	key, prefix, err := e.key(owner, typ, rdata)
	if err != nil {
		return err
	}
	if _, ok := e.added[key]; ok {
		delete(e.added, key)
		return nil
	}
	if e.removed[key] || !e.holds(prefix, typ, key) {
		return fmt.Errorf("zone %s has no such record of %s, type %d, to remove", wire.Text(e.old.origin), wire.Text(owner), typ)
	}
	e.removed[key], e.touched[prefix] = true, true
	return nil
}

// Add adds a record of class IN. All is copied. Adding a record that is there does nothing, but sets its TTL.
func (e *Edit) Add(owner []byte, typ uint16, ttl uint32, rdata []byte) error {
	key, prefix, err := e.key(owner, typ, rdata)
	if err != nil {
		return err
	}
	if _, ok := e.added[key]; !ok {
		e.order = append(e.order, key)
	}
	e.added[key] = Record{append([]byte(nil), owner...), typ, ttl, append([]byte(nil), rdata...)}
	e.removed[key], e.touched[prefix] = true, true // the one that is there, if any, has perhaps another TTL
	return nil
}

// Apply makes the changes of a delta.
func (e *Edit) Apply(d *Delta) error {
	w := d.Walk()
	for n := range d.Removed + d.Added {
		r, _ := w.Next()
		if wire.IsMeta(r.Type) { // which Builder leaves out, and some zones had before
			continue
		}
		err := error(nil)
		if n < d.Removed {
			err = e.Remove(r.Owner, r.Type, r.RData)
		} else {
			err = e.Add(r.Owner, r.Type, r.TTL, r.RData)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Build makes the new version. It takes as long as building the zone does, about half a second for a million
// records. The Edit is of no use after it.
func (e *Edit) Build() (*Zone, error) {
	var owner, rdata []byte
	for _, place := range e.old.places() {
		n := e.old.at(place)
		touched := e.touched[string(n.prefix())]
		owner = append(append(owner[:0], n.prefix()...), e.old.origin...)
		for s := range n.Sets() {
			for set := s; set != nil; set = set.Signatures() {
				for r := set.Records(); len(r) > 0; r = r.Next() {
					rdata = r.AppendRData(rdata[:0], e.old.origin)
					if touched {
						if key, _, err := e.key(owner, set.Type(), rdata); err != nil || e.removed[key] {
							continue
						}
					}
					if err := e.build.Add(owner, set.Type(), r.TTL(), rdata); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	for _, key := range e.order {
		if r, ok := e.added[key]; ok {
			if err := e.build.Add(r.Owner, r.Type, r.TTL, r.RData); err != nil {
				return nil, err
			}
		}
	}
	return e.build.Build()
}

// key is what tells a record from others of the zone, and its owner without the origin.
func (e *Edit) key(owner []byte, typ uint16, rdata []byte) (key, prefix string, err error) {
	var buf [wire.MaxName + 1]byte
	name := buf[:copy(buf[:], owner)]
	wire.Lower(name, name)
	if !wire.Below(name, e.old.origin) {
		return "", "", fmt.Errorf("record %s is not in zone %s", wire.Text(owner), wire.Text(e.old.origin))
	}
	stored, err := e.build.stored(typ, rdata)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", wire.Text(owner), err)
	}
	if service(typ) { // kept in either case
		target := stored[5+2:]
		target = target[:wire.NameLen(target)]
		wire.Lower(target, target)
	}
	prefix = string(name[:len(name)-len(e.old.origin)])
	k := binary.BigEndian.AppendUint16([]byte(prefix), typ)
	return string(append(k, stored...)), prefix, nil
}

// holds reports whether the old version has a record.
func (e *Edit) holds(prefix string, typ uint16, key string) bool {
	n, ok := e.finder.find([]byte(prefix))
	if !ok {
		return false
	}
	owner := n.name(e.old)
	for s := range n.Sets() {
		for set := s; set != nil; set = set.Signatures() {
			if set.Type() != typ {
				continue
			}
			for r := range e.old.RecordsOf(owner, set) {
				if k, _, err := e.key(owner, typ, r.RData); err == nil && k == key {
					return true
				}
			}
		}
	}
	return false
}
