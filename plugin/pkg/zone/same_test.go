package zone

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// TestCaseOfNamesInData: records that differ in the case of names in their data are one, in sets of any size, whether the
// names are in the zone or not; others stay.
func TestCaseOfNamesInData(t *testing.T) {
	for _, tc := range []struct {
		records string
		want    int
	}{
		{"PTR Foo.example.net.|PTR foo.example.net.|PTR fop.example.net.", 2}, {"PTR Foo.example.org.|PTR foo.example.org.|PTR foo.Example.ORG.", 1},
		{"SRV 1 2 3 Foo.|SRV 1 2 3 foo.|SRV 1 2 4 foo.", 2}, {"RP A. b.|RP a. B.|RP a. c.", 2}, {"AFSDB 1 A.|AFSDB 1 a.", 1}, {"MX 1 A.|MX 1 a.", 1},
		{`NAPTR 1 2 "a" "" "" Foo.|NAPTR 1 2 "a" "" "" foo.|NAPTR 1 2 "A" "" "" foo.`, 2}, {"HTTPS 1 A. alpn=h2|HTTPS 1 a. alpn=h2|HTTPS 1 a. alpn=H2", 2},
		{"TXT Foo|TXT foo", 2}, {"TYPE65280 \\# 1 41|TYPE65280 \\# 1 61", 2}, {"LP 1 A.|LP 1 a.", 2}, // names of such types count as they are (RFC 3597 §7)
	} {
		for _, more := range []int{0, 20} {
			b, _ := builder()
			b.FoldCase()
			put(t, b, soaText)
			records := strings.Split(tc.records, "|")
			typ, data, _ := strings.Cut(records[0], " ")
			for i := range more {
				records = append(records, fmt.Sprintf("%s %s", typ, strings.NewReplacer("Foo", fmt.Sprint("n", i), "A.", fmt.Sprintf("n%d.", i), "41", fmt.Sprintf("%02x", i)).Replace(data)))
			}
			for _, r := range records {
				put(t, b, "x.example.org. 60 IN "+r)
			}
			z, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			if n := z.Records() - 1; n != tc.want+more {
				t.Errorf("%s and %d more: %d records, want %d", tc.records, more, n, tc.want+more)
			}
		}
	}
}

// TestCaseOfOthers: who has a zone of others keeps what they have: they may remove one of two such records.
func TestCaseOfOthers(t *testing.T) {
	b, _ := builder()
	put(t, b, soaText, "x.example.org. 60 IN PTR Foo.", "x.example.org. 60 IN PTR foo.")
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	e := z.Edit(t.Errorf)
	if err := e.Remove(wire.MustName("x.example.org"), wire.TypePTR, []byte("\x03Foo\x00")); err != nil {
		t.Fatal(err)
	}
	if z, err = e.Build(); err != nil || z.Records() != 2 {
		t.Errorf("%v, %v", z, err)
	}
}

// TestDeltasOfCaseOfNames: what a change makes of a zone that was given such records can be made of it again.
func TestDeltasOfCaseOfNames(t *testing.T) {
	first := func() *Zone {
		b, _ := builder()
		b.FoldCase()
		put(t, b, soaText, "x.example.org. 300 IN PTR Foo.", "x.example.org. 300 IN PTR foo.")
		z, err := b.Build()
		if err == nil {
			z, err = z.Growing()
		}
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	name := wire.MustName("x.example.org")
	live, again := first(), first()
	for _, edit := range []func(s *Site) error{
		func(s *Site) error { return s.Add(wire.TypePTR, 60, wire.MustName("bar")) }, // the others take its TTL
		func(s *Site) error { s.RemoveType(wire.TypePTR); return nil },
	} {
		c := live.Change()
		if err := edit(c.At(name)); err != nil {
			t.Fatal(err)
		}
		next, d, err := c.Zone()
		if err != nil {
			t.Fatal(err)
		}
		c = again.Change()
		if err := c.Apply(d); err != nil {
			t.Fatal(err)
		}
		if again, _, err = c.Zone(); err != nil {
			t.Fatal(err)
		}
		if live = next; dump(live) != dump(again) {
			t.Errorf("%s", onlyIn(dump(again), dump(live)))
		}
	}
}
