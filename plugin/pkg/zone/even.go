package zone

import (
	"fmt"
	"sort"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// maxMixed is how many RRsets with several TTLs are warned of one by one; the others are counted.
const maxMixed = 10

// even gives all records of an RRset the least of their TTLs (RFC 2181 §5.2), and its signatures the same (RFC 4034
// §3). A zone with a digest stays as it is, for that is made over the TTLs, too.
func (b *Builder) even(set, sigs []int32, owner func() string) {
	first := b.recs.at(set[0])
	if first.typ == wire.TypeSOA || first.typ == wire.TypeRRSIG {
		return // of SOA records one is kept, and signatures have the TTLs of what they cover
	}
	least, other := first.ttl, int32(-1)
	for _, i := range set[1:] {
		if ttl := b.recs.at(i).ttl; ttl != first.ttl {
			least = min(least, ttl)
			if other < 0 {
				other = i
			}
		}
	}
	if other < 0 {
		return
	}
	if b.mixed++; b.mixed <= maxMixed {
		does := "counts for all"
		if b.digest {
			does = "would count for all, if there were no digest"
		}
		b.warn("%sthe records of %s, type %s, have several TTLs: the least, %d, %s", b.places.of(int(other)), owner(), typeText(first.typ), least, does)
	}
	if b.digest {
		return
	}
	for _, recs := range [...][]int32{set, sigs} {
		for _, i := range recs {
			b.recs.at(i).ttl = least
		}
	}
}

// places is where the records of a Builder stand, in the order in which they came.
type places struct {
	runs  []run
	lines rows[uint32] // none if no place is known
	line  uint32       // of the next record
}

// run is records that stand in one file.
type run struct {
	first int
	file  string
}

// At tells where the records begin that are added from now on: in which line of which file. Warnings about records and
// RRsets name it. It is called before the first record, or never.
func (b *Builder) At(file string, line int) {
	p := &b.places
	if n := len(p.runs); n == 0 || p.runs[n-1].file != file {
		p.runs = append(p.runs, run{p.lines.n, file})
	}
	p.line = uint32(line)
}

// add notes the place of a record.
func (p *places) add() {
	if len(p.runs) > 0 {
		p.lines.add(p.line)
	}
}

// next is the place of the next record as of has it.
func (p *places) next() string {
	if len(p.runs) == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", p.runs[len(p.runs)-1].file, p.line)
}

// of is the place of a record as "FILE:LINE: ", "" if it is not known.
func (p *places) of(i int) string {
	if i >= p.lines.n {
		return ""
	}
	n := sort.Search(len(p.runs), func(k int) bool { return p.runs[k].first > i })
	return fmt.Sprintf("%s:%d: ", p.runs[n-1].file, *p.lines.at(int32(i)))
}
