package zone

import (
	"testing"

	"github.com/miekg/dns"
)

// TestLineage: what changed is known of a version and the one that it was made of, also if that is the same as one that
// was built; between others it is looked for.
func TestLineage(t *testing.T) {
	built := manyHosts(t, 10).built(t)
	growing, err := built.Growing()
	if err != nil {
		t.Fatal(err)
	}
	next := func(z *Zone, data byte) (*Zone, *Delta) {
		t.Helper()
		c := z.Change()
		if err := c.At(wireOf(t, "h1.example.org. 60 IN A 192.0.2.1").Owner).Add(dns.TypeA, 60, []byte{192, 0, 2, data}); err != nil {
			t.Fatal(err)
		}
		now, d, err := c.Zone()
		if err != nil {
			t.Fatal(err)
		}
		return now, d
	}
	one, first := next(growing, 101)
	two, second := next(one, 102)
	for _, tc := range []struct {
		what     string
		old, now *Zone
		known    *Delta // nil: it has to be looked for
		added    int
		shares   bool
	}{
		{"one change", growing, one, first, 2, true},
		{"one change of what was built", built, one, first, 2, false},
		{"the next change", one, two, second, 2, true},
		{"two changes", growing, two, nil, 3, false},
		{"two changes of what was built", built, two, nil, 3, false},
		{"no change", built, growing, nil, 1, false},
		{"back", two, one, nil, 1, false},
	} {
		d, ok := Diff(tc.old, tc.now, 1<<20)
		if !ok || d.Added != tc.added || (d == tc.known) != (tc.known != nil) {
			t.Errorf("%s: %v, +%d, known %v", tc.what, ok, d.Added, d == tc.known)
		}
		if tc.now.shares(tc.old) != tc.shares {
			t.Errorf("%s: shares %v", tc.what, !tc.shares)
		}
	}
	if _, ok := Diff(growing, one, 10); ok {
		t.Error("a delta that is too large is no error")
	}
}

// built is a zone with the same records that is not growing.
func (z *Zone) built(t *testing.T) *Zone {
	t.Helper()
	b := NewBuilder(z.Origin(), t.Logf)
	w := z.Walk()
	for rec, ok := w.Next(); ok; rec, ok = w.Next() {
		if err := b.Add(rec.Owner, rec.Type, rec.TTL, rec.RData); err != nil {
			t.Fatal(err)
		}
	}
	v, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
