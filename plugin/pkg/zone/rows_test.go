package zone

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Rows are found by their numbers, and once there is a second chunk, no row moves.
func TestRows(t *testing.T) {
	var r rows[int]
	var kept []*int
	const n = 3*chunkRows + 5
	for i := range n {
		if got := r.add(i); got != int32(i) {
			t.Fatalf("row %d got the number %d", i, got)
		}
		if i >= chunkRows-1 {
			kept = append(kept, r.at(int32(i)))
		}
	}
	for i := range n {
		if got := *r.at(int32(i)); got != i {
			t.Fatalf("row %d holds %d", i, got)
		}
	}
	for i, p := range kept {
		if at := int32(chunkRows - 1 + i); p != r.at(at) {
			t.Fatalf("row %d has moved", at)
		}
	}
}

// largeBuilder has two records of each of n names: one behind the other, or the second ones behind all first ones.
func largeBuilder(t *testing.T, n uint32, together bool) *Builder {
	t.Helper()
	b := NewBuilder(wire.MustName("example.org."), func(format string, args ...any) { t.Errorf(format, args...) })
	for k := range 2 * n {
		i, round := k%n, k/n
		if together {
			i, round = k/2, k%2
		}
		if err := b.Add(wire.MustName(fmt.Sprintf("h%d.example.org.", i)), wire.TypeA, 60, binary.BigEndian.AppendUint32(nil, i<<1|round)); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// Nothing of a zone of several chunks is lost, and records of one name that came far from each other are one RRset.
func TestBuildLarge(t *testing.T) {
	const n = 2*chunkRows + 100
	for _, together := range []bool{false, true} {
		z, err := largeBuilder(t, n, together).BuildTable()
		if err != nil {
			t.Fatal(err)
		}
		if z.Names() != n+1 || z.Records() != 2*n {
			t.Errorf("%d names, %d records", z.Names(), z.Records())
		}
		for i := range uint32(n) {
			m := z.Find(wire.MustName(fmt.Sprintf("h%d.example.org.", i)))
			if m.Kind != Exists {
				t.Fatalf("h%d: kind %d", i, m.Kind)
			}
			r := m.Node.Set(wire.TypeA).Records()
			for round := range uint32(2) {
				if len(r) == 0 || binary.BigEndian.Uint32(r.Data()) != i<<1|round {
					t.Fatalf("h%d: record %d is %x", i, round, []byte(r))
				}
				r = r.Next()
			}
			if len(r) > 0 {
				t.Fatalf("h%d has more records", i)
			}
		}
	}
}

// What was encoded is let go of while the rest is encoded, and what is not encoded is kept.
func TestDraftsReleased(t *testing.T) {
	for _, together := range []bool{false, true} {
		b := largeBuilder(t, 2*chunkRows, together)
		r := newReleaser(b)
		half, last := int32(b.nodes.n/2), int32(b.nodes.n-1)
		for n := range last + 1 {
			d := b.nodes.at(n)
			if _, err := b.encode(d); err != nil {
				t.Fatal(err)
			}
			r.encoded(d, b.order)
			if n != half {
				continue
			}
			want := 1 // the second records of all names stand in chunks behind those of the first ones
			if together {
				want = 2
			}
			if r.recs != want {
				t.Errorf("together %v: half way, %d chunks of %d are let go of, want %d", together, r.recs, len(b.recs.chunks), want)
			}
		}
		if want := len(b.recs.chunks) - 1; r.recs != want {
			t.Errorf("together %v: in the end, %d chunks of %d are let go of, want %d", together, r.recs, len(b.recs.chunks), want)
		}
		for i, c := range b.recs.chunks[:r.recs] {
			if c != nil {
				t.Errorf("together %v: chunk %d is still there", together, i)
			}
		}
	}
}
