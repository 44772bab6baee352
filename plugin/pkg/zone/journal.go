package zone

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Journal is the deltas between the last versions of a zone, for incremental transfers out (RFC 1995). Its zero value
// is empty. It belongs to one goroutine at a time.
type Journal struct {
	deltas []*Delta // each begins where the one before ends
	size   int      // octets of all of them
	doubts []uint32 // serials that Doubt told
}

// maxDoubts is how many serials are remembered that more than one version had.
const maxDoubts = 64

// Doubt notes that more than one version had a serial: who has that one gets no deltas from it on, as nobody knows
// which version it has.
func (j *Journal) Doubt(serial uint32) {
	if !slices.Contains(j.doubts, serial) {
		j.doubts = append(slices.Clip(j.doubts), serial)
		j.doubts = j.doubts[max(0, len(j.doubts)-maxDoubts):]
	}
}

// Empty reports whether there is nothing to remember.
func (j *Journal) Empty() bool { return len(j.deltas) == 0 && len(j.doubts) == 0 }

// Restart forgets the deltas, but no doubts.
func (j *Journal) Restart() { j.deltas, j.size = nil, 0 }

// Add appends a delta. If it does not begin where the last one ends, the ones before are of no use any more, and
// gone. Of the others the oldest go until there are at most count, of at most size octets in all.
func (j *Journal) Add(d *Delta, count, size int) {
	if n := len(j.deltas); n > 0 && j.deltas[n-1].To != d.From {
		j.Restart()
	}
	j.deltas = append(slices.Clip(j.deltas), d) // in new memory, so that those that are gone are not held
	j.size += d.Size()
	for len(j.deltas) > count || len(j.deltas) > 0 && j.size > size {
		j.size -= j.deltas[0].Size()
		j.deltas = j.deltas[1:]
	}
}

// Clear empties the journal.
func (j *Journal) Clear() { *j = Journal{} }

// Len is the number of deltas, Size their octets.
func (j *Journal) Len() int  { return len(j.deltas) }
func (j *Journal) Size() int { return j.size }

// All is all deltas, which lead to the last version. They are only to be read.
func (j *Journal) All() []*Delta { return j.deltas }

// Since is the deltas that lead from one serial to another, nil if the journal does not have them all, or the first one
// is in doubt. If a serial came more than once, the deltas from where it was last count. They are only to be read.
func (j *Journal) Since(from, to uint32) []*Delta {
	if slices.Contains(j.doubts, from) {
		return nil
	}
	end := -1
	for i := len(j.deltas) - 1; i >= 0; i-- {
		if d := j.deltas[i]; end < 0 && d.To == to {
			end = i + 1
		}
		if end >= 0 && j.deltas[i].From == from {
			return j.deltas[i:end]
		}
	}
	return nil
}

// Condense makes one delta of some that follow each other: what was added and removed again, or removed and added
// again, is in none of its parts. There must be one at least.
func Condense(deltas []*Delta) *Delta {
	if len(deltas) == 1 {
		return deltas[0]
	}
	first, last := deltas[0], deltas[len(deltas)-1]
	m := merger{removed: map[string]bool{}, added: map[string]bool{}}
	for _, d := range deltas {
		s := deltaSource{rest: d.blob}
		for n := 0; n < d.Removed+d.Added; {
			prefix, set, _ := s.nextSet()
			if set.Type() != wire.TypeSOA {
				m.take(prefix, set, n < d.Removed)
			}
			n += set.Len()
		}
	}
	d := &Delta{From: first.From, To: last.To, origin: last.origin}
	removed, added := m.side(first, m.removed, true), m.side(last, m.added, false)
	d.Removed, d.Added = removed.records, added.records
	d.blob = append(removed.blob, added.blob...)
	return d
}

// merger gathers single records, by their owner, type and all that they are.
type merger struct{ removed, added map[string]bool }

func (m *merger) take(prefix []byte, set RRset, removed bool) {
	key := append(append([]byte{byte(len(prefix))}, prefix...), 0, 0)
	binary.BigEndian.PutUint16(key[len(key)-2:], set.Type())
	into, from := m.added, m.removed
	if removed {
		into, from = m.removed, m.added
	}
	for r := set.Records(); len(r) > 0; r = r.Next() {
		k := string(key) + string(r.first())
		if from[k] {
			delete(from, k)
		} else {
			into[k] = true
		}
	}
}

// side makes blocks of records; the SOA record comes first, as it stands at one end of d.
func (m *merger) side(d *Delta, records map[string]bool, removed bool) (s side) {
	source := deltaSource{rest: d.blob}
	for n, skip := 0, d.Removed; ; {
		_, set, _ := source.nextSet()
		if removed || n >= skip {
			s.put(nil, wire.TypeSOA, set.Records())
			break
		}
		n += set.Len()
	}
	keys := make([]string, 0, len(records))
	for k := range records {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for len(keys) > 0 {
		head := keys[0][:1+int(keys[0][0])+2]
		var block Records
		n := 0
		for ; n < len(keys) && strings.HasPrefix(keys[n], head); n++ {
			block = append(block, keys[n][len(head):]...)
		}
		s.put([]byte(head[1:len(head)-2]), binary.BigEndian.Uint16([]byte(head[len(head)-2:])), block)
		keys = keys[n:]
	}
	return s
}
