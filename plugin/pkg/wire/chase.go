package wire

import (
	"encoding/binary"
	"sync"
)

// Answers reports whether the answer section of w leads from q's name, along aliases that neither fork nor go round, to
// a record of the type and class asked for. The cost is of the order of the section's length, however the records are
// arranged.
func (w *Reply) Answers(q *Query) bool {
	section := w.Section(Answer)
	if len(section) == 0 {
		return false
	}
	if w.atOnce(section[0], q) {
		return true
	}
	c := chase{w: w, q: q, section: section}
	if len(section) > fewOwners {
		c.index = ownerIndexes.Get().(*ownerIndex)
		defer ownerIndexes.Put(c.index)
		c.index.build(w.buf, section)
	}
	var buf [2][MaxName + 1]byte
	name := append(buf[0][:0], q.Lower()...)
	for step := range len(section) + 1 {
		target, state := c.follow(name, buf[(step+1)%2][:0])
		if state != alias {
			return state == arrived
		}
		name = target
	}
	return false // as many steps as records: a circle
}

// atOnce reports whether r, the first record, answers q and has the question as its owner, by the usual pointer.
func (w *Reply) atOnce(r Rec, q *Query) bool {
	return r.Type == q.Type() && r.Type != TypeCNAME && string(w.buf[r.Off:r.Off+2]) == "\xC0\x0C" && classOf(w.buf, r, q.Class())
}

// classOf reports whether a record is of the class asked for.
func classOf(msg []byte, r Rec, class uint16) bool {
	return class == classANY || binary.BigEndian.Uint16(msg[r.TTL-2:]) == class
}

const classANY = 255

// chase is the way along the aliases of an answer section.
type chase struct {
	w       *Reply
	q       *Query
	section []Rec
	index   *ownerIndex // nil if there are few records
}

type chaseState uint8

const (
	arrived chaseState = iota // a record of the type is there
	alias                     // a CNAME leads on
	lost                      // neither, or CNAMEs with different targets, or a name that was there before
)

// follow looks at what the answer section has at a lower name. target is appended to b.
func (c *chase) follow(name, b []byte) (target []byte, state chaseState) {
	state = lost
	msg, typ := c.w.buf, c.q.Type()
	for i := c.first(name); i < len(c.section); i = c.after(i) {
		r := c.section[i]
		var room [MaxName + 1]byte
		owner, ok := AppendNameAt(room[:0], msg, int(r.Off))
		if !ok || !EqualFold(owner, name) || !classOf(msg, r, c.q.Class()) {
			continue
		}
		if c.index != nil && c.index.revisited(i) {
			return nil, lost
		}
		if typ == TypeANY || r.Type == typ && typ != TypeCNAME {
			return nil, arrived
		}
		if r.Type != TypeCNAME {
			continue
		}
		next, ok := AppendNameAt(room[:0], msg, int(r.TTL)+6)
		if !ok || state == alias && !EqualFold(next, target) {
			return nil, lost
		}
		target, state = append(b[:0], next...), alias
	}
	if state == alias {
		if typ == TypeCNAME {
			return nil, arrived
		}
		Lower(target, target)
	}
	return target, state
}

// first is the first record that may be at a lower name, and after the next one behind record i; the section's length
// if there is none.
func (c *chase) first(name []byte) int {
	if c.index == nil {
		return 0
	}
	return int(c.index.heads[Hash(name)%uint64(len(c.index.heads))])
}

func (c *chase) after(i int) int {
	if c.index == nil {
		return i + 1
	}
	return int(c.index.next[i])
}

// fewOwners is for how many records an index of their owners takes longer to make than it saves.
const fewOwners = 16

// ownerIndex finds records by their owners: a hash table of lists, each in the order of the section.
type ownerIndex struct {
	heads, next []uint16 // the section's length ends a list
	visited     []bool   // record i was looked at
}

var ownerIndexes = sync.Pool{New: func() any { return new(ownerIndex) }}

// build makes x the index of a section of msg.
func (x *ownerIndex) build(msg []byte, section []Rec) {
	n := uint16(len(section))
	x.heads, x.next, x.visited = x.heads[:0], append(x.next[:0], make([]uint16, n)...), append(x.visited[:0], make([]bool, n)...)
	for range n {
		x.heads = append(x.heads, n)
	}
	for i := len(section) - 1; i >= 0; i-- {
		var room [MaxName + 1]byte
		owner, _ := AppendNameAt(room[:0], msg, int(section[i].Off))
		Lower(owner, owner)
		head := &x.heads[Hash(owner)%uint64(n)]
		x.next[i], *head = *head, uint16(i)
	}
}

// revisited reports whether record i was looked at before, and notes that it is now.
func (x *ownerIndex) revisited(i int) bool {
	was := x.visited[i]
	x.visited[i] = true
	return was
}
