package proxy

import "math/rand/v2"

// idTable is the exchanges that wait on one socket or connection, by message id. It is a hash table
// chained through the exchanges themselves, so that the usual handful costs no memory. The engine's lock guards it.
type idTable struct {
	n     int
	one   [1]*Exchange
	slots []*Exchange // a power of two; nil means one[:]
}

// crowded is how many exchanges one table takes: more, and a free id could not be found by drawing lots.
const crowded = 1 << 15

func (t *idTable) slot(id uint16) **Exchange {
	if t.slots == nil {
		return &t.one[0]
	}
	return &t.slots[int(id)&(len(t.slots)-1)]
}

// find is the exchange with that id, nil if there is none.
func (t *idTable) find(id uint16) *Exchange {
	x := *t.slot(id)
	for x != nil && x.id != id {
		x = x.chained
	}
	return x
}

// add gives x an id that is free and cannot be guessed, and takes x in. The caller sees to it
// that the table is not crowded.
func (t *idTable) add(x *Exchange, random *rand.ChaCha8) {
	for x.id = uint16(random.Uint64()); t.find(x.id) != nil; {
		x.id = uint16(random.Uint64())
	}
	if size := max(1, len(t.slots)); t.n >= 2*size {
		t.grow(4 * size)
	}
	t.insert(x)
	t.n++
}

func (t *idTable) insert(x *Exchange) {
	s := t.slot(x.id)
	x.chained = *s
	*s = x
}

func (t *idTable) grow(size int) {
	all := t.all()
	t.one[0], t.slots = nil, make([]*Exchange, size)
	for _, x := range all {
		t.insert(x)
	}
}

// remove takes x out, which must be in.
func (t *idTable) remove(x *Exchange) {
	s := t.slot(x.id)
	for *s != x {
		s = &(*s).chained
	}
	*s = x.chained
	x.chained = nil
	t.n--
}

// all is the exchanges that are in.
func (t *idTable) all() []*Exchange {
	if t.n == 0 {
		return nil
	}
	all := make([]*Exchange, 0, t.n)
	slots := t.slots
	if slots == nil {
		slots = t.one[:]
	}
	for _, x := range slots {
		for ; x != nil; x = x.chained {
			all = append(all, x)
		}
	}
	return all
}
