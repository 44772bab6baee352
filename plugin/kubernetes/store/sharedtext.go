package store

import "hash/maphash"

// sharedText finds texts that a record being built has already, such as the nodes and zones of its endpoints: each
// stands once in its text.
type sharedText struct {
	slots []part // by hash; 0 for none
	n     int
}

// begin forgets all, for the next record.
func (t *sharedText) begin() {
	t.n = 0
	if t.slots == nil {
		t.slots = make([]part, 16)
	}
	clear(t.slots)
}

// find is the slot in which b stands, or would stand; text is the record's.
func (t *sharedText) find(text, b []byte) *part {
	for slot := int(maphash.Bytes(seed, b)); ; slot++ {
		p := &t.slots[slot&(len(t.slots)-1)]
		if *p == 0 || string(text[*p>>8:][:*p&maxPart]) == string(b) {
			return p
		}
	}
}

// add puts p into the slot that find has told.
func (t *sharedText) add(slot *part, text []byte, p part) {
	*slot = p
	if t.n++; 2*t.n < len(t.slots) {
		return
	}
	old := t.slots
	t.slots = make([]part, 2*len(old))
	for _, p := range old {
		if p != 0 {
			*t.find(text, text[p>>8:][:p&maxPart]) = p
		}
	}
}
