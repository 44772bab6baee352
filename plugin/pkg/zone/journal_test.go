package zone

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestJournal(t *testing.T) {
	delta := func(from, to uint32, size int) *Delta { return &Delta{From: from, To: to, blob: make([]byte, size)} }
	var j Journal
	serials := func(from, to uint32) (s string) {
		for _, d := range j.Since(from, to) {
			s += itoa(int(d.From)) + "-" + itoa(int(d.To)) + " "
		}
		return s
	}
	for i := range uint32(5) {
		j.Add(delta(i, i+1, 10), 4, 1000)
	}
	for _, tc := range []struct {
		from, to uint32
		want     string
	}{{1, 5, "1-2 2-3 3-4 4-5 "}, {4, 5, "4-5 "}, {2, 4, "2-3 3-4 "}, {0, 5, ""}, {5, 5, ""}, {3, 9, ""}} {
		if got := serials(tc.from, tc.to); got != tc.want {
			t.Errorf("%d to %d: %q, want %q", tc.from, tc.to, got, tc.want)
		}
	}
	kept := j.Since(1, 5)
	j.Add(delta(5, 2, 10), 4, 1000) // the serial went back
	if serials(2, 2) != "2-3 3-4 4-5 5-2 " || serials(5, 2) != "5-2 " || kept[0].From != 1 || kept[3].To != 5 {
		t.Errorf("%q, %v", serials(2, 2), kept)
	}
	j.Add(delta(2, 6, 985), 4, 1000) // much
	if j.Len() != 2 || j.Size() != 995 || serials(5, 6) != "5-2 2-6 " {
		t.Errorf("%d deltas of %d octets, %q", j.Len(), j.Size(), serials(5, 6))
	}
	j.Add(delta(8, 9, 10), 4, 1000) // something is missing
	if j.Len() != 1 || j.Size() != 10 {
		t.Errorf("%d deltas of %d octets", j.Len(), j.Size())
	}
	j.Add(delta(9, 10, 1001), 4, 1000)
	if j.Len() != 0 || j.Size() != 0 {
		t.Errorf("%d deltas of %d octets", j.Len(), j.Size())
	}
}

// TestDoubt: of a serial that two versions had nothing is known, whatever comes after it, but not for ever.
func TestDoubt(t *testing.T) {
	var j Journal
	delta := func(from, to uint32) { j.Add(&Delta{From: from, To: to}, 4, 1000) }
	delta(1, 2)
	delta(2, 2)
	j.Doubt(2)
	j.Doubt(2)
	delta(2, 3)
	if j.Since(2, 3) != nil || len(j.Since(1, 3)) != 3 {
		t.Errorf("since 2: %v, since 1: %v", j.Since(2, 3), j.Since(1, 3))
	}
	if j.Restart(); j.Len() != 0 || j.Empty() {
		t.Error("the doubt is forgotten with the deltas")
	}
	delta(2, 4)
	if j.Since(2, 4) != nil {
		t.Error("2 is known again")
	}
	for i := range uint32(maxDoubts) {
		j.Doubt(100 + i)
	}
	if len(j.Since(2, 4)) != 1 || len(j.doubts) != maxDoubts {
		t.Errorf("%d doubts", len(j.doubts))
	}
	if j.Clear(); !j.Empty() {
		t.Error("not empty")
	}
}

// TestCondense: one delta of several leads to the same version, and holds nothing for nothing.
func TestCondense(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		versions := []*Zone{randomZone(t, r, 1)}
		var deltas []*Delta
		for i := range 1 + r.IntN(4) {
			now := randomZone(t, r, i+2)
			if r.IntN(4) == 0 { // what it was two versions ago
				now = versions[max(0, len(versions)-2)]
			}
			d, ok := Diff(versions[len(versions)-1], now, 1<<20)
			if !ok {
				t.Fatal("no delta")
			}
			versions, deltas = append(versions, now), append(deltas, d)
		}
		first, last := versions[0], versions[len(versions)-1]
		one := Condense(deltas)
		if one.From != first.Serial() || one.To != last.Serial() {
			t.Fatalf("%d to %d", one.From, one.To)
		}
		e := first.Edit(t.Logf)
		if err := e.Apply(one); err != nil {
			t.Fatal(err)
		}
		made, err := e.Build()
		if err != nil {
			t.Fatal(err)
		}
		got, want := slices.Sorted(slices.Values(lines(t, made.Walk()))), slices.Sorted(slices.Values(lines(t, last.Walk())))
		if !slices.Equal(got, want) {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		all := lines(t, one.Walk())
		if len(all) != one.Removed+one.Added || !strings.Contains(all[0], "SOA") || !strings.Contains(all[one.Removed], "SOA") {
			t.Fatalf("%d records, %d removed: %s, %s", len(all), one.Removed, all[0], all[one.Removed])
		}
		for _, l := range all[1:one.Removed] {
			if len(deltas) > 1 && slices.Contains(all[one.Removed:], l) {
				t.Errorf("removed and added: %s", l)
			}
		}
	}
}

func TestIncrement(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	a, b, c := randomZone(t, r, 1), randomZone(t, r, 2), randomZone(t, r, 3)
	ab, _ := Diff(a, b, 1<<20)
	bc, _ := Diff(b, c, 1<<20)
	soa := lines(t, c.Transfer())[0]
	if got := lines(t, c.Increment(nil)); len(got) != 1 || got[0] != soa {
		t.Errorf("without deltas: %v", got)
	}
	want := append(append([]string{soa}, lines(t, ab.Walk())...), append(lines(t, bc.Walk()), soa)...)
	if got := lines(t, c.Increment([]*Delta{ab, bc})); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
