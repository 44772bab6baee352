package fetch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// share has increments of zones of any size make versions that share what did not change.
func share(t testing.TB) {
	before := largeZone
	largeZone = 0
	t.Cleanup(func() { largeZone = before })
}

func soa(serial int) string {
	return fmt.Sprintf("example.org. 300 IN SOA ns.example.org. h.example.org. %d 7200 3600 1209600 60", serial)
}

// feed makes a version of old and one step.
func feed(t testing.TB, old *zone.Zone, removed, added []string) *zone.Zone {
	t.Helper()
	from := int(old.Serial())
	s := newStream(origin, old, t.Logf)
	for _, text := range slices.Concat([]string{soa(from + 1), soa(from)}, removed, []string{soa(from + 1)}, added, []string{soa(from + 1)}) {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1024)
		n, err := dns.PackRR(rr, buf, 0, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		owner := wire.NameLen(buf[:n])
		h := rr.Header()
		if err := s.take(zone.Record{Owner: buf[:owner], Type: h.Rrtype, TTL: h.Ttl, RData: buf[owner+10 : n]}); err != nil {
			t.Fatal(err)
		}
	}
	v, err := s.build()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestStepsShare: increments make the same zone, whether versions share or not; what changed from one to the next is
// known without a look at the zone, and is what a comparison finds.
func TestStepsShare(t *testing.T) {
	texts := []string{"A 192.0.2.%d", "TXT t%d", "NS ns%d.example.org.", "DNAME d%d.example.net.", "NSEC3 1 0 0 - 0123456789ABCDEFGHIJKLMNOPQRSTU%d A"}
	names := []string{"a", "b.a", "C.b.a", "*.w", "x.y.z", "h0123456789abcdefghijklmnopqrst"}
	r := rand.New(rand.NewPCG(7, 8))
	there := map[string]bool{}
	whole := build(t, soa(1), "example.org. 300 IN NS ns.example.org.")
	shared := whole
	for step := range 300 {
		removed, added := map[string]bool{}, map[string]bool{}
		for range 1 + r.IntN(4) {
			line := fmt.Sprintf("%s.example.org. 300 IN "+texts[r.IntN(len(texts))], names[r.IntN(len(names))], r.IntN(3))
			if isHash := strings.HasPrefix(line, "h01"); strings.Contains(line, "NSEC3") != isHash {
				continue
			}
			if there[line] {
				removed[line] = true
			} else {
				added[line] = true
			}
		}
		for line := range removed {
			delete(there, line)
		}
		for line := range added {
			there[line] = true
		}
		before := shared
		gone, come := slices.Sorted(maps.Keys(removed)), slices.Sorted(maps.Keys(added))
		whole = feed(t, whole, gone, come)
		func() {
			was := largeZone
			largeZone = 0
			defer func() { largeZone = was }()
			shared = feed(t, shared, gone, come)
		}()
		if step > 0 && shared.Octets() == 0 {
			t.Fatal("the version shares nothing")
		}
		got, want := lines(t, shared), lines(t, whole)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("step %d: -%v +%v:\n%s\nwant\n%s", step, gone, come, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		again := zone.NewBuilder(origin, t.Logf)
		again.AllowNSEC3()
		w := before.Walk()
		for rec, ok := w.Next(); ok; rec, ok = w.Next() {
			if err := again.Add(rec.Owner, rec.Type, rec.TTL, rec.RData); err != nil {
				t.Fatal(err)
			}
		}
		compared, err := again.Build()
		if err != nil {
			t.Fatal(err)
		}
		known, ok := zone.Diff(before, shared, 1<<20)
		if found, _ := zone.Diff(compared, shared, 1<<20); !ok || known.Added != found.Added || known.Removed != found.Removed || known.From != found.From || known.To != found.To {
			t.Fatalf("step %d: -%d +%d from %d to %d is known, -%d +%d from %d to %d is found", step, known.Removed, known.Added, known.From, known.To,
				found.Removed, found.Added, found.From, found.To)
		}
	}
}

// manyHosts is a zone with so many addresses.
func manyHosts(t testing.TB, hosts int) *zone.Zone {
	t.Helper()
	b := zone.NewBuilder(origin, t.Logf)
	for _, rr := range records(t, soa(1), "example.org. 300 IN NS ns.example.org.") {
		if err := b.AddRR(rr); err != nil {
			t.Fatal(err)
		}
	}
	for i := range hosts {
		name, _ := wire.LowerName(fmt.Sprintf("h%d.example.org.", i))
		if err := b.Add(name, dns.TypeA, 300, []byte{192, 0, 2, 1}); err != nil {
			t.Fatal(err)
		}
	}
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestStepsOfLargeZone: a small increment of a large zone takes little memory, and so does the comparison of both
// versions; a large one makes the zone anew, and so does one of a zone with a digest.
func TestStepsOfLargeZone(t *testing.T) {
	const hosts = 40_000
	z := manyHosts(t, hosts)
	host := func(i int) []string { return []string{fmt.Sprintf("h%d.example.org. 300 IN A 192.0.2.1", i)} }
	z = feed(t, z, host(1), nil) // the first one makes the zone one that grows
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 10 {
		now := feed(t, z, host(2+i), []string{fmt.Sprintf("new%d.example.org. 300 IN TXT x", i)})
		if d, ok := zone.Diff(z, now, 1<<20); !ok || d.Added != 2 || d.Removed != 2 {
			t.Errorf("-%d +%d", d.Removed, d.Added)
		}
		z = now
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / 10; n > 100_000 {
		t.Errorf("an increment of two records takes %d octets", n)
	}
	var many []string
	for i := range hosts / 10 {
		many = append(many, host(20+i)...)
	}
	if v := feed(t, z, many, nil); v.Octets() != 0 || v.Records() != z.Records()-len(many) {
		t.Errorf("after a large increment: %d records, growing %v", v.Records(), v.Octets() != 0)
	}
	if v := feed(t, z, nil, []string{"example.org. 300 IN ZONEMD 1 1 1 " + strings.Repeat("00", 48)}); v.Octets() != 0 {
		t.Error("a zone with a digest grows")
	}
}

// BenchmarkIncrement is an increment of two records of a zone of a million, and what tells of it: with versions that
// share, and with a zone made anew each time.
func BenchmarkIncrement(b *testing.B) {
	z := manyHosts(b, 1_000_000)
	for _, shares := range []bool{true, false} {
		b.Run(fmt.Sprintf("shares=%v", shares), func(b *testing.B) {
			if !shares {
				defer func(was int) { largeZone = was }(largeZone)
				largeZone = 1 << 30
			}
			old := feed(b, z, nil, []string{"first.example.org. 60 IN A 192.0.2.1"})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now := feed(b, old, nil, []string{fmt.Sprintf("h%d.example.org. 60 IN TXT %d", i%1000, i)})
				zone.Diff(old, now, 1<<20)
				old = now
			}
		})
	}
}

// TestTwoNextVersions: a version has two next ones, as where an old and a new configuration fetch the same in a reload.
// Neither is written to by the other, nor by what comes after that.
func TestTwoNextVersions(t *testing.T) {
	share(t)
	base := feed(t, build(t, soa(1), "example.org. 300 IN NS ns.example.org."), nil, []string{"w.example.org. 300 IN A 192.0.2.1"})
	one := feed(t, base, nil, []string{"x.example.org. 300 IN A 192.0.2.2"})
	want := lines(t, one)
	other := feed(t, base, nil, []string{"y.example.org. 300 IN A 192.0.2.3"})
	for _, name := range []string{"a", "b"} {
		other = feed(t, other, nil, []string{name + ".example.org. 300 IN TXT " + name})
	}
	if got := lines(t, one); !slices.Equal(got, want) {
		t.Errorf("a version changed into\n%s\nand was\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if next := feed(t, one, nil, nil); len(lines(t, next)) != len(want) {
		t.Errorf("the next one is\n%s", strings.Join(lines(t, next), "\n"))
	}
}

// TestSignedLater: a primary that signs its zone sends the signatures alone, which are of targets in the case that they
// came in.
func TestSignedLater(t *testing.T) {
	test := func(t *testing.T) {
		old := newStream(origin, nil, t.Logf)
		target := "www.example.org. 300 IN HTTPS 1 Svc.Example.ORG. alpn=\"h2\""
		for _, rr := range records(t, soa(7), target, "x.example.org. 300 IN SVCB 1 Svc.Example.ORG.", soa(7)) {
			buf := make([]byte, 512)
			n, err := dns.PackRR(rr, buf, 0, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			at := wire.NameLen(buf[:n])
			if err := old.take(zone.Record{Owner: buf[:at], Type: rr.Header().Rrtype, TTL: 300, RData: buf[at+10 : n]}); err != nil {
				t.Fatal(err)
			}
		}
		v, err := old.build()
		if err != nil {
			t.Fatal(err)
		}
		sig := "%s.example.org. 300 IN RRSIG %s 13 3 300 20450101000000 20200101000000 1 example.org. c2ln"
		got := lines(t, feed(t, v, nil, []string{fmt.Sprintf(sig, "www", "HTTPS"), fmt.Sprintf(sig, "x", "SVCB"), "y.example.org. 300 IN HTTPS 1 Svc.Example.ORG."}))
		if n := strings.Count(strings.Join(got, "\n"), "1 Svc.Example.ORG."); n != 3 || len(got) != 6 {
			t.Errorf("got\n%s", strings.Join(got, "\n"))
		}
	}
	t.Run("anew", test)
	share(t)
	t.Run("versions that share", test)
}

// A record of a type that is for messages is left out of a zone, so the primary may remove what is not there, and one
// that it adds is not served: in a version that shares with the one before as in any other.
func TestStepsWithoutMetaTypes(t *testing.T) {
	const meta = `x.example.org. 60 IN TYPE41 \# 0`
	zones := map[string]func(*testing.T){"made anew": func(*testing.T) {}, "shared": func(t *testing.T) { share(t) }}
	for how, prepare := range zones {
		t.Run(how, func(t *testing.T) {
			prepare(t)
			old := build(t, soa(1), "example.org. 300 IN NS ns.example.org.")
			z := feed(t, old, nil, []string{meta, "x.example.org. 60 IN A 192.0.2.1"})
			z = feed(t, z, []string{meta, "x.example.org. 60 IN A 192.0.2.1"}, []string{"y.example.org. 60 IN A 192.0.2.1"})
			z = feed(t, z, nil, []string{meta})
			if shares := z.Octets() > 0; shares != (how == "shared") || z.Records() != 3 || z.Serial() != 4 {
				t.Errorf("shares: %v; serial %d, records %q", shares, z.Serial(), lines(t, z))
			}
		})
	}
}
