package zone

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// version is a random zone's text with another serial and some of its records left out, and some with another TTL.
func version(seed uint64, serial int) string {
	r := rand.New(rand.NewPCG(seed, uint64(serial)))
	lines := strings.Split(strings.TrimSpace(zonetest.New("example.org.", seed).Text), "\n")
	soa := strings.Fields(lines[0])
	soa[6] = fmt.Sprint(serial)
	text := strings.Join(soa, " ") + "\n" + lines[1] + "\n"
	for _, l := range lines[2:] {
		switch r.IntN(6) {
		case 0, 1:
			continue
		case 2:
			f := strings.Fields(l)
			f[1] = "7"
			l = strings.Join(f, " ")
		}
		text += l + "\n"
	}
	return text
}

// content is all records of a zone, sorted.
func content(t testing.TB, z *Zone) []string {
	all := lines(t, z.Walk())
	slices.Sort(all)
	return all
}

// A delta says what is to be removed from one version and added to make the next: whoever does so has that version
// (RFC 1995 §2), and it answers like it. So do several deltas one after the other, and what they condense to.
func TestDeltasLeadToVersions(t *testing.T) {
	for seed := range uint64(60) {
		var zones []*Zone
		var journal Journal
		for serial := range 5 {
			zones = append(zones, build(t, "example.org.", version(seed, serial+1)))
			if serial == 0 {
				continue
			}
			d, ok := Diff(zones[serial-1], zones[serial], 1<<20)
			if !ok {
				t.Fatal("no delta")
			}
			journal.Add(d, 10, 1<<20)
			if got := follows(t, zones[serial-1], d); !slices.Equal(content(t, got), content(t, zones[serial])) {
				t.Fatalf("seed %d, version %d: got\n%v\nwant\n%v", seed, serial, content(t, got), content(t, zones[serial]))
			}
			if n := len(lines(t, d.Walk())); n != d.Removed+d.Added || d.Idle() {
				t.Fatalf("seed %d: %d records, %d removed and %d added", seed, n, d.Removed, d.Added)
			}
			back, _ := Diff(zones[serial], zones[serial-1], 1<<20)
			if back.Removed != d.Added || back.Added != d.Removed || back.From != d.To || back.To != d.From {
				t.Errorf("seed %d: the way back is %+v, there %+v", seed, back, d)
			}
		}
		for from := range 5 {
			for to := from + 1; to < 5; to++ {
				deltas := journal.Since(uint32(from+1), uint32(to+1))
				if len(deltas) != to-from {
					t.Fatalf("from %d to %d: %d deltas", from+1, to+1, len(deltas))
				}
				one := Condense(deltas)
				if one.From != uint32(from+1) || one.To != uint32(to+1) {
					t.Fatalf("condensed from %d to %d: %+v", from+1, to+1, one)
				}
				got := follows(t, zones[from], one)
				if !slices.Equal(content(t, got), content(t, zones[to])) {
					t.Fatalf("seed %d, from %d to %d: got\n%v\nwant\n%v", seed, from, to, content(t, got), content(t, zones[to]))
				}
				direct, _ := Diff(zones[from], zones[to], 1<<20)
				if one.Removed != direct.Removed || one.Added != direct.Added {
					t.Errorf("seed %d: condensed to %d removed and %d added, the difference is %d and %d", seed, one.Removed, one.Added, direct.Removed, direct.Added)
				}
				for _, q := range asks(zonetest.New("example.org.", seed), seed)[:10] {
					if g, w := tell(t, got, q).String(), tell(t, zones[to], q).String(); g != w {
						t.Fatalf("seed %d, %v: got\n%swant\n%s", seed, q, g, w)
					}
				}
			}
		}
	}
}

// follows is the version that a delta makes of another.
func follows(t *testing.T, old *Zone, d *Delta) *Zone {
	t.Helper()
	before := content(t, old)
	e := old.Edit(t.Logf)
	if err := e.Apply(d); err != nil {
		t.Fatal(err)
	}
	now, err := e.Build()
	if err != nil {
		t.Fatal(err)
	}
	if now.Serial() != d.To || !slices.Equal(content(t, old), before) {
		t.Fatalf("serial %d, want %d; the old version has\n%v", now.Serial(), d.To, content(t, old))
	}
	return now
}

// A delta for another version does not fit: a record that is to be removed is not there, so all must be fetched (RFC
// 1995 §4).
func TestDeltaOfAnotherVersion(t *testing.T) {
	a, b := build(t, "example.org.", apex+"www A 192.0.2.1\n"), build(t, "example.org.", apex)
	d, _ := Diff(a, b, 1<<20)
	e := b.Edit(t.Logf)
	if err := e.Apply(d); err == nil || !strings.Contains(err.Error(), "no such record of www.example.org., type 1, to remove") {
		t.Errorf("got %v", err)
	}
	if same, ok := Diff(a, a, 1<<20); !ok || !same.Idle() || same.Size() == 0 {
		t.Errorf("a version and itself: %+v", same)
	}
	if _, ok := Diff(a, build(t, "example.net.", apex), 1<<20); ok {
		t.Error("there is a delta between zones of different names")
	}
	if d2, ok := Diff(a, b, d.Size()); !ok || d2.Size() != d.Size() {
		t.Errorf("a delta as large as its limit: %v", ok)
	}
	if _, ok := Diff(a, b, d.Size()-1); ok {
		t.Error("a delta is larger than its limit")
	}
}

// Changes that come as records count in their order; TTLs do not tell records apart, and neither does the case of names
// that are kept in lower case (RFC 4343).
func TestEditByRecords(t *testing.T) {
	z := build(t, "example.org.", apex+"www A 192.0.2.1\nwww A 192.0.2.2\nmx MX 10 mail\nsvc HTTPS 1 Web alpn=h2\n")
	rr := func(s string) dns.RR {
		rr, err := dns.NewRR(s)
		if err != nil {
			t.Fatal(err)
		}
		return rr
	}
	for _, tc := range []struct {
		what           string
		remove, add    []string
		gone, has, err string
	}{
		{"one of two", []string{"www.example.org. 99 A 192.0.2.1"}, nil, "192.0.2.1 www", "192.0.2.2 www", ""},
		{"in another case", []string{"MX.example.ORG. 1 MX 10 MAIL.example.org.", "svc.example.org. HTTPS 1 web.example.org. alpn=h2"}, nil, "mail", "www", ""},
		{"another TTL", nil, []string{"mx.example.org. 5 MX 10 mail.example.org."}, "300 IN MX", "5 IN MX", ""},
		{"a new name", nil, []string{"a.b.example.org. 5 TXT x"}, "", "a.b.example.org. 5 IN TXT", ""},
		{"removed and added", []string{"www.example.org. A 192.0.2.1"}, []string{"www.example.org. 300 A 192.0.2.1"}, "", "300 IN A 192.0.2.1", ""},
		{"what is not there", []string{"www.example.org. A 192.0.2.9"}, nil, "", "", "no such record"},
		{"twice", []string{"www.example.org. A 192.0.2.1", "www.example.org. A 192.0.2.1"}, nil, "", "", "no such record"},
		{"a type that is not there", []string{"www.example.org. TXT x"}, nil, "", "", "no such record"},
		{"a name that is not there", []string{"no.example.org. A 192.0.2.1"}, nil, "", "", "no such record"},
		{"another zone's", []string{"www.example.net. A 192.0.2.1"}, nil, "", "", "not in zone"},
		{"into another zone", nil, []string{"www.example.net. A 192.0.2.1"}, "", "", "not in zone"},
	} {
		e := z.Edit(t.Logf)
		var err error
		for _, s := range tc.remove {
			if err == nil {
				err = e.RemoveRR(rr(s))
			}
		}
		for _, s := range tc.add {
			if err == nil {
				err = e.AddRR(rr(s))
			}
		}
		if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, want %s", tc.what, err, tc.err)
		}
		if err != nil {
			continue
		}
		now, err := e.Build()
		if err != nil {
			t.Fatal(tc.what, err)
		}
		var all []string
		for _, l := range lines(t, now.Walk()) {
			f := strings.Fields(l)
			all = append(all, strings.Join(f, " ")+" "+strings.Join(f[4:], " ")+" "+strings.TrimSuffix(f[0], ".example.org."))
		}
		text := strings.Join(all, "\n")
		if tc.gone != "" && strings.Contains(text, tc.gone) || !strings.Contains(text, tc.has) {
			t.Errorf("%s: %s is there, or not %s:\n%s", tc.what, tc.gone, tc.has, text)
		}
	}
}

// A transfer has the SOA record first and last and every other record once (RFC 5936 §2.2), in messages of any length,
// whatever the question of the message is: names point into it only if it is for the zone.
func TestTransfersOfRandomZones(t *testing.T) {
	for seed := range uint64(40) {
		z := build(t, "example.org.", zonetest.New("example.org.", seed).Text)
		want := lines(t, z.Transfer())
		walk := lines(t, z.Walk())
		if n := len(want); n != len(walk)+1 || want[0] != want[n-1] || !strings.Contains(want[0], "SOA") || n != z.Records()+1 {
			t.Fatalf("seed %d: %d records are sent, the zone has %d", seed, n, z.Records())
		}
		if rest := want[1 : len(want)-1]; slices.ContainsFunc(rest, func(l string) bool { return l == want[0] }) || slices.ContainsFunc(walk, func(l string) bool { return l != want[0] && !slices.Contains(rest, l) }) {
			t.Fatalf("seed %d:\n%v\nwant those of\n%v", seed, want, walk)
		}
		for _, question := range []string{"example.org.", "EXAMPLE.org.", "x."} {
			for _, limit := range []int{1, 300, 1000, wire.MaxMessage} {
				var got []string
				w := z.Transfer()
				for more := true; more; {
					m, n := fill(t, w, question, limit, &more)
					if len(m.Answer) == 0 || n > limit && len(m.Answer) > 1 {
						t.Fatalf("limit %d: %d octets with %d records", limit, n, len(m.Answer))
					}
					for _, rr := range m.Answer {
						got = append(got, rr.String())
					}
				}
				if !slices.Equal(spaces(got), spaces(want)) {
					t.Fatalf("seed %d, question %s, limit %d: got\n%s\nwant\n%s", seed, question, limit, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		}
	}
}

// fill is the next message of a walk, and its octets.
func fill(t *testing.T, w *Walk, question string, limit int, more *bool) (*dns.Msg, int) {
	t.Helper()
	var q wire.Query
	if err := q.SetMsg(new(dns.Msg).SetQuestion(question, dns.TypeAXFR), wire.Peer{Limit: wire.MaxMessage}); err != nil {
		t.Fatal(err)
	}
	var r wire.Reply
	r.Reset(nil)
	r.Begin(&q)
	*more = w.Fill(&r, limit)
	n := len(r.Bytes())
	m := new(dns.Msg)
	if err := m.Unpack(r.Finish(&q, 1232)); err != nil {
		t.Fatal(err)
	}
	return m, n
}

// spaces makes lines comparable.
func spaces(all []string) (out []string) {
	for _, l := range all {
		out = append(out, strings.Join(strings.Fields(l), " "))
	}
	return out
}

// A journal keeps the newest deltas that follow each other, within its bounds; one that does not follow begins it anew.
func TestJournalBounds(t *testing.T) {
	delta := func(from, to uint32, size int) *Delta { return &Delta{From: from, To: to, blob: make([]byte, size)} }
	var j Journal
	for i := range uint32(5) {
		j.Add(delta(i, i+1, 10), 3, 1000)
	}
	if j.Len() != 3 || j.Size() != 30 || j.Since(1, 5) != nil || len(j.Since(2, 5)) != 3 || len(j.Since(2, 4)) != 2 || j.Since(5, 2) != nil || j.Since(2, 9) != nil {
		t.Errorf("by number: %d deltas of %d octets", j.Len(), j.Size())
	}
	if j.Add(delta(5, 6, 25), 3, 40); j.Len() != 2 || j.Size() != 35 || len(j.Since(4, 6)) != 2 {
		t.Errorf("by size: %d deltas of %d octets", j.Len(), j.Size())
	}
	if j.Add(delta(6, 7, 41), 3, 40); j.Len() != 0 || j.Size() != 0 {
		t.Errorf("one that is too large: %d deltas of %d octets", j.Len(), j.Size())
	}
	j.Add(delta(1, 2, 1), 3, 40)
	if j.Add(delta(7, 8, 1), 3, 40); j.Len() != 1 || j.Since(1, 2) != nil || len(j.Since(7, 8)) != 1 {
		t.Errorf("after a gap: %d deltas", j.Len())
	}
	if j.Clear(); j.Len() != 0 || j.Size() != 0 || j.Since(7, 8) != nil {
		t.Errorf("cleared: %d deltas", j.Len())
	}
	// A serial that came twice counts from where it was last (RFC 1982 allows it to come round).
	for _, d := range []*Delta{delta(1, 2, 1), delta(2, 1, 1), delta(1, 3, 1)} {
		j.Add(d, 9, 99)
	}
	if got := j.Since(1, 3); len(got) != 1 {
		t.Errorf("%d deltas from 1 to 3", len(got))
	}
}
