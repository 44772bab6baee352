package zone

import "runtime"

// What a large zone is made of takes as much memory again as the zone, and for a reload the version before is there,
// too. So Build lets go of what it has read while it goes, and has that collected: left to itself, the collector
// would wait until the heap has doubled.

// largePiece is the octets of garbage that are worth a collection of their own, which takes some milliseconds of
// work, in which queries are answered.
const largePiece = 32 << 20

// collect frees what is garbage, if so many octets are enough.
func collect(octets int) bool {
	if octets < largePiece {
		return false
	}
	runtime.GC()
	return true
}

// releaser lets go of the drafts of a Builder that have been encoded. Nodes are encoded in the order in which they
// were made, and their records mostly are in order, too.
type releaser struct {
	b     *Builder
	left  []int32 // records of each chunk that were not encoded yet
	recs  int     // chunks of records that were let go of: all of them before this one
	names int     // the same of names
	data  int     // the same of data
	freed int     // octets since the last collection
}

func newReleaser(b *Builder) *releaser {
	r := &releaser{b: b, left: make([]int32, len(b.recs.chunks))}
	for i, c := range b.recs.chunks {
		r.left[i] = int32(len(c))
	}
	return r
}

// encoded lets go of what nobody needs when a draft was encoded; recs is its records.
func (r *releaser) encoded(d *draft, recs []int32) {
	for _, i := range recs {
		r.left[i>>rowBits]--
	}
	for ; r.names < int(d.name>>chunkBits); r.names++ {
		r.freed += drop(r.b.names.chunks, r.names)
	}
	for ; r.recs < len(r.left)-1 && r.left[r.recs] == 0; r.recs++ {
		r.freed += chunkRows * draftRecordSize
		r.b.recs.chunks[r.recs] = nil
		if r.recs < len(r.b.places.lines.chunks) {
			r.b.places.lines.chunks[r.recs] = nil
		}
		// Data stands in the order of the records.
		for next := int(r.b.recs.chunks[r.recs+1][0].data >> chunkBits); r.data < next; r.data++ {
			r.freed += drop(r.b.data.chunks, r.data)
		}
	}
	if collect(r.freed) {
		r.freed = 0
	}
}

// drop lets go of a chunk and returns its octets.
func drop(chunks [][]byte, i int) int {
	n := cap(chunks[i])
	chunks[i] = nil
	return n
}
