package zone

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

func TestDiff(t *testing.T) {
	soa := func(serial int) string {
		return fmt.Sprintf("@ SOA ns1 hostmaster %d 7200 3600 1209600 60\n@ NS ns1\n", serial)
	}
	sig := "13 3 300 20450101000000 20200101000000 1 example.org. "
	old := build(t, "example.org.", soa(1)+"same A 192.0.2.1\ngone A 192.0.2.2\ntwo A 192.0.2.3\ntwo A 192.0.2.4\ntwo RRSIG A "+sig+"b2xk\nttl 5 A 192.0.2.5\n@ RRSIG SOA "+sig+"czE=\nx.ent TXT a\n")
	now := build(t, "example.org.", soa(2)+"same A 192.0.2.1\nnew A 192.0.2.2\ntwo A 192.0.2.4\ntwo A 192.0.2.9\ntwo RRSIG A "+sig+"bmV3\nttl 6 A 192.0.2.5\n@ RRSIG SOA "+sig+"czI=\nx.ent TXT a\n")
	d, ok := Diff(old, now, 1<<20)
	if !ok {
		t.Fatal("no delta")
	}
	var got []string
	for _, l := range lines(t, d.Walk()) {
		f := strings.Fields(l)
		got = append(got, f[0]+" "+f[1]+" "+f[3]+" "+f[len(f)-1])
	}
	want := []string{"example.org. 300 SOA 60", "example.org. 300 RRSIG czE=", "gone.example.org. 300 A 192.0.2.2", "two.example.org. 300 A 192.0.2.3", "two.example.org. 300 RRSIG b2xk", "ttl.example.org. 5 A 192.0.2.5",
		"example.org. 300 SOA 60", "example.org. 300 RRSIG czI=", "new.example.org. 300 A 192.0.2.2", "two.example.org. 300 A 192.0.2.9", "two.example.org. 300 RRSIG bmV3", "ttl.example.org. 6 A 192.0.2.5"}
	slices.Sort(got[1:d.Removed])
	slices.Sort(want[1:6])
	slices.Sort(got[d.Removed+1:])
	slices.Sort(want[7:])
	if d.From != 1 || d.To != 2 || d.Removed != 6 || d.Added != 6 || !slices.Equal(got, want) {
		t.Errorf("%d to %d, %d removed, %d added\n%s\nwant\n%s", d.From, d.To, d.Removed, d.Added, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, ok := Diff(old, now, d.Size()-1); ok {
		t.Error("the delta is larger than allowed")
	}
	if _, ok := Diff(old, build(t, "example.net.", apex), 1<<20); ok {
		t.Error("a delta of two different zones")
	}
	if d, ok := Diff(old, old, 1<<20); !ok || d.Removed != 1 || d.Added != 1 {
		t.Errorf("a delta of a zone with itself: %+v", d)
	}
}

// randomZone is a zone of some records out of few, so that two of them have much in common.
func randomZone(t testing.TB, r *rand.Rand, serial int) *Zone {
	text := fmt.Sprintf("@ SOA ns1 hostmaster %d 7200 3600 1209600 60\n@ NS ns1\n", serial)
	for range r.IntN(40) {
		name := []string{"a", "b", "c", "a.b", "x.a.b", "*.c", "D"}[r.IntN(7)]
		text += name + " " + []string{"5", "6"}[r.IntN(2)] + " " + []string{
			"A 192.0.2." + itoa(r.IntN(4)), "TXT t" + itoa(r.IntN(3)), "MX 5 m" + itoa(r.IntN(3)), "NS ns" + itoa(r.IntN(2)) + ".example.net.",
			"HTTPS 1 T" + itoa(r.IntN(2)) + ".example.net.", "RRSIG A 13 3 300 20450101000000 20200101000000 1 example.org. " + []string{"YQ==", "Yg=="}[r.IntN(2)],
			"SRV 1 2 3 Srv" + itoa(r.IntN(2)),
		}[r.IntN(7)] + "\n"
	}
	return build(t, "example.org.", text)
}

// TestEdit shows that a version and the delta to the next give the next.
func TestEdit(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		old, now := randomZone(t, r, 1), randomZone(t, r, 2)
		d, ok := Diff(old, now, 1<<20)
		if !ok {
			t.Fatal("no delta")
		}
		e := old.Edit(func(string, ...any) {})
		if err := e.Apply(d); err != nil {
			t.Fatal(err)
		}
		made, err := e.Build()
		if err != nil {
			t.Fatal(err)
		}
		got, want := slices.Sorted(slices.Values(lines(t, made.Walk()))), slices.Sorted(slices.Values(lines(t, now.Walk())))
		if !slices.Equal(got, want) {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if made.Names() > now.Names() && made.Records() != now.Records() {
			t.Errorf("%d names and %d records, want %d and %d", made.Names(), made.Records(), now.Names(), now.Records())
		}
	}
}

func TestEditInOrder(t *testing.T) {
	z := build(t, "example.org.", apex+"a A 192.0.2.1\n")
	name, one, two := wire.MustName("A.example.org"), []byte{192, 0, 2, 1}, []byte{192, 0, 2, 2}
	e := z.Edit(t.Logf)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(e.Remove(name, wire.TypeA, one))
	if err := e.Remove(name, wire.TypeA, one); err == nil {
		t.Error("a record was removed twice")
	}
	must(e.Add(name, wire.TypeA, 9, one))
	must(e.Add(name, wire.TypeA, 9, two))
	must(e.Remove(name, wire.TypeA, two))
	if err := e.Remove(name, wire.TypeA, []byte{192, 0, 2, 3}); err == nil || !strings.Contains(err.Error(), "zone example.org. has no such record of A.example.org., type 1, to remove") {
		t.Errorf("a record that is not there: %v", err)
	}
	if err := e.Add(wire.MustName("example.net"), wire.TypeA, 5, one); err == nil {
		t.Error("a record of another zone was added")
	}
	made, err := e.Build()
	must(err)
	_, got := answer(t, made, "a.example.org.", "A", false)
	if !strings.Contains(got, "an a.example.org. 9 IN A 192.0.2.1\n") || strings.Contains(got, "192.0.2.2") {
		t.Error(got)
	}
	if _, before := answer(t, z, "a.example.org.", "A", false); !strings.Contains(before, "an a.example.org. 300 IN A 192.0.2.1\n") {
		t.Errorf("the old version changed: %s", before)
	}
}

func TestLive(t *testing.T) {
	var l Live
	var told []string
	note := func(who string) func(old, now *Zone) {
		return func(old, now *Zone) {
			s := who
			for _, z := range []*Zone{old, now} {
				if z == nil {
					s += " -"
				} else {
					s += fmt.Sprintf(" %d", z.Serial())
				}
			}
			if l.Load() != now {
				s += " early"
			}
			told = append(told, s)
		}
	}
	zone := func(serial int) *Zone {
		return build(t, "example.org.", fmt.Sprintf("@ SOA a. b. %d 2 3 4 5\n", serial))
	}
	if l.Load() != nil {
		t.Error("a version before the first")
	}
	l.OnReplace(note("journal"))
	stop := l.OnReplace(note("notify"))
	l.Replace(zone(1))
	l.Replace(zone(2))
	stop()
	l.Replace(nil)
	want := "journal - 1|notify - 1|journal 1 2|notify 1 2|journal 2 -"
	if got := strings.Join(told, "|"); got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

func BenchmarkDiff(b *testing.B) {
	const n = 100000
	make := func(changed int) *Zone {
		bu := NewBuilder(wire.MustName("example.org"), b.Logf)
		soa, _ := dns.NewRR("example.org. 5 SOA a. b. 1 2 3 4 5")
		bu.AddRR(soa)
		for i := range n {
			bu.Add(wire.MustName(fmt.Sprintf("h%d.example.org", i)), wire.TypeA, 5, []byte{10, byte(i >> 16), byte(i >> 8), byte(i % changed)})
		}
		z, _ := bu.Build()
		return z
	}
	old, now := make(251), make(256)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Diff(old, now, 1<<30); !ok {
			b.Fatal("no delta")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
}
