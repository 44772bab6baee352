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

// Records of one name that came far from each other are one RRset, and nothing of a zone of several chunks is lost.
func TestBuildLarge(t *testing.T) {
	const n = 2*chunkRows + 100
	origin := wire.MustName("example.org.")
	b := NewBuilder(origin, func(format string, args ...any) { t.Errorf(format, args...) })
	add := func(owner string, data uint32) {
		if err := b.Add(wire.MustName(owner), wire.TypeA, 60, binary.BigEndian.AppendUint32(nil, data)); err != nil {
			t.Fatal(err)
		}
	}
	for round := range uint32(2) {
		for i := range uint32(n) {
			add(fmt.Sprintf("h%d.example.org.", i), i<<1|round)
		}
	}
	z, err := b.BuildTable()
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
