package zone

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// Owners of NSEC3 records are no names of the zone (RFC 5155 §7.2.8), but records of it: versions differ in them, too,
// and edits take them away and bring them.
func TestVersionsWithNSEC3(t *testing.T) {
	for seed := range uint64(25) {
		plain := build(t, "example.org.", version(seed, 1))
		hashed := func(serial int) *Zone {
			text := version(seed, serial)
			return buildNSEC3(t, withNSEC3(newModel("example.org.", text), text))
		}
		one, two := hashed(2), hashed(3)
		for _, tc := range []struct{ old, now *Zone }{{one, two}, {two, one}, {one, plain}} {
			d, ok := Diff(tc.old, tc.now, 1<<20)
			if !ok {
				t.Fatal("no delta")
			}
			got := follows(t, tc.old, d)
			if !slices.Equal(content(t, got), content(t, tc.now)) || got.Signed() != tc.now.Signed() || got.Names() != tc.now.Names() {
				t.Fatalf("seed %d: got\n%v\nwant\n%v", seed, content(t, got), content(t, tc.now))
			}
		}
		// A zone without them takes them when it is told to.
		d, _ := Diff(plain, one, 1<<20)
		if err := plain.Edit(t.Logf).Apply(d); err != nil {
			t.Fatal(err)
		}
		e := plain.Edit(t.Logf)
		e.Apply(d)
		if _, err := e.Build(); err == nil || !strings.Contains(err.Error(), ErrNSEC3.Error()) {
			t.Errorf("NSEC3 records in a zone that takes none: %v", err)
		}
		e = plain.Edit(t.Logf)
		e.AllowNSEC3()
		e.Apply(d)
		if now, err := e.Build(); err != nil || !slices.Equal(content(t, now), content(t, one)) {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// Large RRsets are compared as small ones are.
func TestDiffOfLargeSets(t *testing.T) {
	set := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "many A 10.0.%d.%d\n", i>>8, i&255)
		}
		return b.String()
	}
	old, now := build(t, "example.org.", apex+set(0, 3000)), build(t, "example.org.", apex+set(100, 3050))
	d, ok := Diff(old, now, 1<<20)
	if !ok || d.Removed != 1+100 || d.Added != 1+50 {
		t.Fatalf("%+v", d)
	}
	if got := follows(t, old, d); !slices.Equal(content(t, got), content(t, now)) {
		t.Errorf("got %d records, want %d", got.Records(), now.Records())
	}
}

// Whoever answers is told the way along the aliases, and the wildcard that the answer was made from (RFC 4592 §1.3, the
// source of synthesis), if it was.
func TestWayAndWildcard(t *testing.T) {
	z := build(t, "example.org.", away+"one CNAME two\ntwo CNAME x.d\n*.dyn A 192.0.2.7\n")
	for _, tc := range []struct{ name, way, wildcard string }{
		{"www.example.org.", "", ""},
		{"near.example.org.", "near.example.org.", ""},
		{"chain.example.org.", "chain.example.org. child.example.org.", "*.dyn.example.org."},
		{"One.example.org.", "one.example.org. two.example.org. x.d.example.org.", "*.dyn.example.org."},
		{"a.b.w.example.org.", "a.b.w.example.org.", "*.dyn.example.org."},
		{"x.s.example.org.", "", "*.s.example.org."},
		{"*.s.example.org.", "", ""},
		{"no.example.org.", "", ""},
	} {
		var a Answerer
		var w wire.Reply
		w.Reset(nil)
		if a.Answer(z, &w, asking(t, tc.name)) == External {
			a.Alone()
		}
		var way []string
		for _, name := range a.Way() {
			way = append(way, wire.Text(name))
		}
		star := ""
		if name := a.Wildcard(); name != nil {
			star = wire.Text(name)
		}
		if got := strings.Join(way, " "); got != tc.way || star != tc.wildcard {
			t.Errorf("%s: way %q, want %q; wildcard %q, want %q", tc.name, got, tc.way, star, tc.wildcard)
		}
	}
}

// A digest is over the zone in canonical form (RFC 8976 §3.3.1): neither the order of records nor the case of names
// that are lowered there (RFC 4034 §6.2) changes it, nor ZONEMD records and their signatures; anything else does.
func TestDigestIsCanonical(t *testing.T) {
	const base = apex + `a NS NS.Sub
b PTR Host
c MX 5 Mail
d SRV 1 2 3 Srv
e NAPTR 1 2 "s" "Http" "" Repl
f RP Mbox Txt
g AFSDB 1 Afs
h MINFO R.x E.x
i PX 1 Map Mapx
j DNAME Other
k RRSIG A 13 3 300 20450101000000 20200101000000 1 Example.ORG. d3d3
l TXT "Case"
`
	digest := func(text string) []byte {
		sum, err := build(t, "example.org.", text).Digest(DigestSimple, DigestSHA384)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	want := digest(base)
	lines := strings.Split(strings.TrimSpace(base), "\n")
	slices.Reverse(lines)
	for what, tc := range map[string]struct {
		text string
		same bool
	}{
		"another order":           {strings.Join(lines, "\n") + "\n", true},
		"names in lower case":     {strings.NewReplacer("NS.Sub", "ns.sub", "Host", "host", "Mail", "mail", "Srv", "srv", "Repl", "repl", "Mbox Txt", "mbox txt", "Afs", "afs", "R.x E.x", "r.x e.x", "Map Mapx", "map mapx", "Other", "other", "Example.ORG", "example.org").Replace(base), true},
		"an owner in upper case":  {strings.Replace(base, "\nl TXT", "\nL TXT", 1), true},
		"a digest":                {base + "@ ZONEMD 7 1 1 " + strings.Repeat("00", 48) + "\n@ RRSIG ZONEMD 13 2 300 20450101000000 20200101000000 1 example.org. d3d3\n", true},
		"a digest elsewhere":      {base + "x ZONEMD 7 1 1 " + strings.Repeat("00", 48) + "\n", false},
		"another signature":       {base + "@ RRSIG SOA 13 2 300 20450101000000 20200101000000 1 example.org. d3d3\n", false},
		"another text":            {strings.Replace(base, `"Case"`, `"case"`, 1), false},
		"a string, not a name":    {strings.Replace(base, `"Http"`, `"http"`, 1), false},
		"another TTL":             {strings.Replace(base, "l TXT", "l 9 TXT", 1), false},
		"one record more":         {base + "m A 192.0.2.1\n", false},
		"the same record at once": {base + "l TXT \"Case\"\n", true},
	} {
		if got := digest(tc.text); bytes.Equal(got, want) != tc.same {
			t.Errorf("%s: the same digest: %v", what, !tc.same)
		}
	}
	z := build(t, "example.org.", base)
	for _, tc := range []struct {
		scheme, algorithm uint8
		want              string
	}{{0, 1, "scheme 0"}, {2, 1, "scheme 2"}, {1, 0, "algorithm 0"}, {1, 3, "algorithm 3"}} {
		if _, err := z.Digest(tc.scheme, tc.algorithm); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("scheme %d, algorithm %d: %v", tc.scheme, tc.algorithm, err)
		}
	}
}

// A question in another case gets records that are the same but for the names that follow it: also from an Answerer
// that has answered others, whose buffers it uses again.
func TestOneAnswererForAll(t *testing.T) {
	text := zonetest.New("example.org.", 4)
	z := build(t, "example.org.", text.Text)
	var again Answerer
	for _, q := range asks(text, 4) {
		var replies [2]*dns.Msg
		for i, a := range []*Answerer{&again, new(Answerer)} {
			var query wire.Query
			m := new(dns.Msg)
			m.Question = []dns.Question{q}
			if err := query.SetMsg(m, wire.Peer{Limit: wire.MaxMessage}); err != nil {
				t.Fatal(err)
			}
			var w wire.Reply
			w.Reset(nil)
			if a.Answer(z, &w, &query) == External {
				a.Alone()
			}
			replies[i] = new(dns.Msg)
			if err := replies[i].Unpack(w.Finish(&query, 1232)); err != nil {
				t.Fatal(err)
			}
		}
		if replies[0].String() != replies[1].String() {
			t.Fatalf("%v: used again, it says\n%v\nwant\n%v", q, replies[0], replies[1])
		}
	}
}
