package catalog_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/catalog"
)

// base is what every catalog has.
const base = `
@       SOA ns.invalid. hostmaster.invalid. 1 7200 3600 1209600 300
@       NS  invalid.
version TXT "2"
`

// records reads a zone file's text. It stops at the first error, as a fuzzer's text is full of them.
func records(text string) []dns.RR {
	p := dns.NewZoneParser(strings.NewReader("$TTL 300\n"+text), "catalog.example.", "")
	var rrs []dns.RR
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		rrs = append(rrs, rr)
	}
	return rrs
}

func TestParse(t *testing.T) {
	rrs := records(base + `
m2.zones        PTR Example.COM.
m1.zones        PTR example.org.
group.m1.zones  TXT "operator-y"
group.m1.zones  TXT "oper" "ator-x"
coo.m1.zones    PTR Other.Example.
M3.Zones        PTR 2.0.192.in-addr.arpa.

; said twice, and in another case
m1.zones        PTR EXAMPLE.org.
coo.m1.zones    PTR other.example.
group.m1.zones  TXT "operator-y"
VERSION         TXT "2"
@               SOA ns.invalid. hostmaster.invalid. 1 7200 3600 1209600 300

; of no meaning
www             A   192.0.2.1
version         A   192.0.2.1
zones           PTR example.net.
m4.zones        TXT "no zone"
m4.zones        NS  invalid.
x.m4.zones      PTR example.net.
a.b.m4.zones    PTR example.net.
coo.m4.zones    TXT "no name"
group.m4.zones  PTR example.net.
m4.zones.x      PTR example.net.
version.x       TXT "3"
m5.zones.catalog.example.net. PTR example.net.
m6.zones.other.example. PTR example.net.
`)
	want := &catalog.Catalog{
		Origin: "catalog.example.",
		Members: []catalog.Member{
			{ID: "m1", Zone: "example.org.", Groups: []string{"operator-x", "operator-y"}, ChangeOfOwnership: "other.example."},
			{ID: "m2", Zone: "example.com."},
			{ID: "m3", Zone: "2.0.192.in-addr.arpa."},
		},
	}
	slices.Reverse(rrs) // the order does not matter
	for _, origin := range []string{"catalog.example.", "Catalog.Example"} {
		got, err := catalog.Parse(origin, rrs)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v\nwant %+v", origin, got, err, want)
		}
	}
}

func TestParseEmptyCatalog(t *testing.T) {
	got, err := catalog.Parse("catalog.example.", records(base))
	if err != nil || got.Origin != "catalog.example." || len(got.Members) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseBrokenCatalogs(t *testing.T) {
	soa, rest, _ := strings.Cut(strings.TrimSpace(base), "\n")
	ns, version, _ := strings.Cut(rest, "\n")
	for _, tc := range []struct{ text, want string }{
		{"", "catalog zone catalog.example. has no SOA record"},
		{rest, "catalog zone catalog.example. has no SOA record"},
		{rest + "\nx " + soa[1:], "catalog zone catalog.example. has no SOA record"},
		{soa + "\n" + version, "catalog zone catalog.example. has no NS record"},
		{soa + "\n" + ns, "catalog zone catalog.example. must have exactly one version TXT record"},
		{base + `version TXT "3"`, "catalog zone catalog.example. must have exactly one version TXT record"},
		{soa + "\n" + ns + "\nversion TXT 1", `catalog zone catalog.example. has unsupported version "1"`},
		{base + "m1.zones PTR a.\nm1.zones PTR b.", "catalog member m1.zones.catalog.example. must have exactly one PTR record"},
		{base + "group.m1.zones TXT a", "catalog member m1.zones.catalog.example. must have exactly one PTR record"},
		{base + "coo.m1.zones PTR a.", "catalog member m1.zones.catalog.example. must have exactly one PTR record"},
		{base + "m1.zones PTR a.\ncoo.m1.zones PTR b.\ncoo.m1.zones PTR c.", "catalog member m1.zones.catalog.example. must have at most one coo PTR record"},
		{base + "m2.zones PTR a.\nm1.zones PTR A.", "catalog member zone a. is listed by both m1 and m2"},
		{base + "m2.zones PTR a.\nm2.zones PTR b.\nm1.zones PTR c.\nm1.zones PTR d.", "catalog member m1.zones.catalog.example. must have exactly one PTR record"},
		{base + "m1.zones CH PTR a.", "catalog zone catalog.example. has a record of class CH, not IN: m1.zones.catalog.example."},
	} {
		got, err := catalog.Parse("catalog.example.", records(tc.text))
		if got != nil || err == nil || err.Error() != tc.want {
			t.Errorf("%s\ngot %+v, %v\nwant %s", tc.text, got, err, tc.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(base)
	f.Add(base + "m1.zones PTR example.org.\ngroup.m1.zones TXT \"a\"\ncoo.m1.zones PTR other.example.\n")
	f.Add(base + `a\.b.zones PTR \000.`)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "$") {
			return // $GENERATE makes any number of records
		}
		rrs := records(text)
		c, err := catalog.Parse("catalog.example.", rrs)
		if (c == nil) == (err == nil) {
			t.Fatalf("got %+v and %v", c, err)
		}
		if err != nil {
			return
		}
		seen := make(map[string]bool)
		for i, m := range c.Members {
			if i > 0 && m.ID <= c.Members[i-1].ID {
				t.Fatalf("%q stands after %q", m.ID, c.Members[i-1].ID)
			}
			if m.Zone == "" || seen[m.Zone] || m.Zone != dns.CanonicalName(m.Zone) {
				t.Fatalf("got zone %q", m.Zone)
			}
			seen[m.Zone] = true
		}
		// Another order of the records says the same.
		slices.Reverse(rrs)
		if again, err := catalog.Parse("catalog.example.", rrs); err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("backwards: got %+v, %v\nwant %+v", again, err, c)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var text strings.Builder
	text.WriteString(base)
	for i := range 1000 {
		fmt.Fprintf(&text, "m%d.zones PTR z%d.example.org.\n", i, i)
	}
	rrs := records(text.String())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := catalog.Parse("catalog.example.", rrs); err != nil {
			b.Fatal(err)
		}
	}
}
