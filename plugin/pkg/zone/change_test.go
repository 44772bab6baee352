package zone

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// dump is all that a version holds: its names with their flags, and their records in an order of their own.
func dump(z *Zone) string {
	var b strings.Builder
	for name, n := range z.Nodes() {
		fmt.Fprintf(&b, "%s %05b\n", wire.Text(name), n.flags())
		var lines []string
		for s := range n.Sets() {
			for set := s; set != nil; set = set.Signatures() {
				for r := range z.RecordsOf(name, set) {
					lines = append(lines, fmt.Sprintf("  %s %d %d %.20x\n", wire.Text(name), r.Type, r.TTL, r.RData))
				}
			}
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, ""))
	}
	fmt.Fprintf(&b, "%d records, %d names, serial %d\n", z.Records(), z.Names(), z.Serial())
	return b.String()
}

// onlyIn is the lines that one of two texts has.
func onlyIn(got, want string) string {
	var b strings.Builder
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for _, l := range g {
		if !slices.Contains(w, l) {
			b.WriteString("got  " + l + "\n")
		}
	}
	for _, l := range w {
		if !slices.Contains(g, l) {
			b.WriteString("want " + l + "\n")
		}
	}
	return b.String()
}

// wireOf is a record in wire form.
func wireOf(t testing.TB, text string) (r Record) {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := packed(rr, func(p Record) error {
		r = Record{slices.Clone(p.Owner), p.Type, p.TTL, slices.Clone(p.RData)}
		wire.Lower(r.Owner, r.Owner)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return r
}

// rebuilt is a zone of records, built whole.
func rebuilt(t testing.TB, records map[string]Record) *Zone {
	t.Helper()
	origin, _ := wire.LowerName("example.org.")
	b := NewBuilder(origin, func(string, ...any) {})
	for _, key := range slices.Sorted(maps.Keys(records)) {
		r := records[key]
		if err := b.Add(r.Owner, r.Type, r.TTL, r.RData); err != nil {
			t.Fatal(err)
		}
	}
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// randomLine is a record at one of few names, so that cuts, aliases, wildcards and empty non-terminals come and go above
// and below each other.
func randomLine(r *rand.Rand, big bool) string {
	labels := []string{"a", "b", "*", "c", strings.Repeat("x", 50)}
	name := "example.org."
	for range 1 + r.IntN(4) {
		name = labels[r.IntN(len(labels))] + "." + name
	}
	data := []string{"A 192.0.2.%d", "TXT t%d", "NS n%d.a.example.org.", "DNAME d%d.example.org.", "CNAME a.b%d.example.org.", "PTR p%d.example.org.", "MX %d a.example.net."}
	text := fmt.Sprintf(data[r.IntN(len(data))], r.IntN(4))
	if big {
		text = fmt.Sprintf("TXT t%d", r.IntN(4)) + strings.Repeat(" "+strings.Repeat("z", 250), 8)
	}
	return name + " 300 IN " + text
}

// TestChange makes versions by random changes, and compares each with one that is built whole of the same records. Older versions
// stay as they were.
func TestChange(t *testing.T) {
	for _, big := range []bool{false, true} {
		r := rand.New(rand.NewPCG(5, 6))
		soa := wireOf(t, "example.org. 60 IN SOA ns.example.org. h.example.org. 1 7200 3600 1209600 60")
		records := map[string]Record{"soa": soa}
		z, err := rebuilt(t, records).Growing()
		if err != nil {
			t.Fatal(err)
		}
		last := dump(z)
		versions, dumps := []*Zone{z}, []string{last}
		chunks := map[*byte]bool{}
		steps := 500
		if big {
			steps = 200
		}
		for step := range steps {
			c := z.Change()
			for range 1 + r.IntN(6) {
				line := randomLine(r, big)
				rec := wireOf(t, line)
				s := c.At(rec.Owner)
				had := s.Has(rec.Type, rec.RData)
				if _, ok := records[line]; ok != had {
					t.Fatalf("%s: there %v, want %v", line, had, ok)
				}
				// Late steps take away what the first ones gave.
				if had || step > steps*4/5 && r.IntN(3) > 0 {
					if s.Remove(rec.Type, rec.RData) != had {
						t.Fatalf("%s was not removed", line)
					}
					delete(records, line)
				} else {
					if err := s.Add(rec.Type, rec.TTL, rec.RData); err != nil {
						t.Fatal(err)
					}
					records[line] = rec
				}
			}
			old := z
			var delta *Delta
			if z, delta, err = c.Zone(); err != nil {
				t.Fatal(err)
			}
			whole := rebuilt(t, records)
			now := dump(z)
			if want := dump(whole); now != want {
				t.Fatalf("step %d: %s", step, onlyIn(now, want))
			}
			octets := 0
			for _, rec := range records {
				octets += len(rec.Owner) + 10 + len(rec.RData)
			}
			if z.Octets() != octets {
				t.Fatalf("step %d: %d octets of records, want %d", step, z.Octets(), octets)
			}
			accounted(t, z)
			if want, _ := Diff(old, z, 1<<30); sortedDelta(delta) != sortedDelta(want) {
				t.Fatalf("step %d: delta %s", step, onlyIn(sortedDelta(delta), sortedDelta(want)))
			}
			if delta.Changes() != (last != now) {
				t.Fatalf("step %d: changes %v", step, delta.Changes())
			}
			for name := range whole.Nodes() {
				if m, w := z.Find(name), whole.Find(name); m.Kind != w.Kind || string(m.Node.prefix()) != string(w.Node.prefix()) {
					t.Fatalf("step %d: %s found as %v, want %v", step, wire.Text(name), m, w)
				}
			}
			for _, c := range z.chunks {
				if len(c) > 0 {
					chunks[&c[0]] = true
				}
			}
			if last = now; step%100 == 0 {
				versions, dumps = append(versions, z), append(dumps, now)
			}
		}
		for i, v := range versions {
			if dump(v) != dumps[i] {
				t.Errorf("version %d is another than it was", i)
			}
		}
		if held, live := z.held(), 0; big {
			for _, n := range z.grown.live {
				live += n
			}
			if held > 2*live+4*sweepFrom || len(chunks) < 10 {
				t.Errorf("%d octets are held for %d, in %d chunks so far", held, live, len(chunks))
			}
		}
	}
}

// accounted compares what the chunks of a growing zone are said to hold for it with the nodes that are in use.
func accounted(t *testing.T, z *Zone) {
	t.Helper()
	want := make([]int, len(z.chunks))
	count := func(place uint32) bool {
		want[place>>chunkBits] += z.at(place).size()
		return true
	}
	count(z.grown.apex)
	z.grown.tree.each(z, nil, count)
	z.grown.hashes.each(z, nil, count)
	if !slices.Equal(z.grown.live, want) {
		t.Fatalf("chunks are said to hold %v, and hold %v", z.grown.live, want)
	}
}

// Nodes of NSEC3 records that are replaced, or go, leave holes as others do.
func TestHashesAreAccounted(t *testing.T) {
	for seed := range uint64(5) {
		hashed := func(serial int) *Zone {
			text := version(seed, serial)
			return buildNSEC3(t, withNSEC3(newModel("example.org.", text), text))
		}
		z, err := hashed(1).Growing()
		if err != nil {
			t.Fatal(err)
		}
		for serial := 2; serial < 6; serial++ {
			d, ok := Diff(z, hashed(serial), 1<<20)
			if !ok {
				t.Fatal("no delta")
			}
			c := z.Change()
			if err := c.Apply(d); err != nil {
				t.Fatal(err)
			}
			if z, _, err = c.Zone(); err != nil {
				t.Fatal(err)
			}
			accounted(t, z)
		}
	}
}

// sortedDelta is what a delta removes and adds, in an order of its own.
func sortedDelta(d *Delta) string {
	var lines []string
	w := d.Walk()
	for n := range d.Removed + d.Added {
		r, _ := w.Next()
		lines = append(lines, fmt.Sprintf("%v %s %d %d %.20x", n < d.Removed, wire.Text(r.Owner), r.Type, r.TTL, r.RData))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestChangeMany adds names to a small zone until its pages are spread and its tree has several floors, and takes them away again.
func TestChangeMany(t *testing.T) {
	soa := wireOf(t, "example.org. 60 IN SOA ns.example.org. h.example.org. 1 7200 3600 1209600 60")
	z, err := rebuilt(t, map[string]Record{"soa": soa}).Growing()
	if err != nil {
		t.Fatal(err)
	}
	const names = 30000
	owner := func(i int) []byte {
		name, _ := wire.LowerName(fmt.Sprintf("h%d.n%d.example.org.", i, i%7))
		return name
	}
	order := rand.New(rand.NewPCG(1, 1)).Perm(names)
	for _, add := range []bool{true, false} {
		for part := range slices.Chunk(order, 13) {
			c := z.Change()
			for _, i := range part {
				if add {
					if err := c.At(owner(i)).Add(dns.TypeA, 60, []byte{192, 0, 2, byte(i)}); err != nil {
						t.Fatal(err)
					}
				} else if !c.At(owner(i)).RemoveType(dns.TypeA) {
					t.Fatalf("%d is not there", i)
				}
			}
			if z, _, err = c.Zone(); err != nil {
				t.Fatal(err)
			}
		}
		want := 1
		if add {
			want = 1 + 7 + names
		}
		n, prev := 0, []byte(nil)
		for name := range z.Nodes() {
			n++
			p := name[:len(name)-len(z.origin)]
			if prev != nil && compare(prev, p) >= 0 {
				t.Fatalf("%s is not behind what comes before it", wire.Text(name))
			}
			prev = slices.Clone(p)
		}
		if z.Names() != want || n != want {
			t.Fatalf("%d names, %d in order, want %d", z.Names(), n, want)
		}
		for i := range names {
			if _, ok := z.Lookup(owner(i), wire.Hash(owner(i))); ok != add {
				t.Fatalf("%d is there: %v", i, ok)
			}
		}
	}
}

// BenchmarkChange changes one record of a zone; queries are compared in package file.
func BenchmarkChange(b *testing.B) {
	for _, names := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprint(names), func(b *testing.B) {
			z := manyHosts(b, names)
			r := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			for b.Loop() {
				name, _ := wire.LowerName(fmt.Sprintf("h%d.example.org.", r.IntN(2*names)))
				c := z.Change()
				s := c.At(name)
				if !s.RemoveType(dns.TypeA) {
					s.Add(dns.TypeA, 60, []byte{192, 0, 2, 1})
				}
				var err error
				if z, _, err = c.Zone(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// manyHosts is a growing zone of so many names.
func manyHosts(tb testing.TB, names int) *Zone {
	origin, _ := wire.LowerName("example.org.")
	b := NewBuilder(origin, func(string, ...any) {})
	soa := wireOf(tb, "example.org. 60 IN SOA ns.example.org. h.example.org. 1 7200 3600 1209600 60")
	b.Add(soa.Owner, soa.Type, soa.TTL, soa.RData)
	for i := range names {
		name, _ := wire.LowerName(fmt.Sprintf("h%d.example.org.", i))
		b.Add(name, dns.TypeA, 60, []byte{192, 0, 2, byte(i)})
	}
	z, err := b.Build()
	if err == nil {
		z, err = z.Growing()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return z
}

// TestNewDelta: a delta of the records of another one is the same, and leads to the same version.
func TestNewDelta(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	old, now := randomZone(t, r, 1), randomZone(t, r, 2)
	d, _ := Diff(old, now, 1<<20)
	var records [2][]Record
	w := d.Walk()
	for n := range d.Removed + d.Added {
		rec, _ := w.Next()
		side := 0
		if n >= d.Removed {
			side = 1
		}
		records[side] = append(records[side], Record{slices.Clone(rec.Owner), rec.Type, rec.TTL, slices.Clone(rec.RData)})
	}
	again, err := NewDelta(old.Origin(), records[0], records[1])
	if err != nil {
		t.Fatal(err)
	}
	if again.From != 1 || again.To != 2 || sortedDelta(again) != sortedDelta(d) {
		t.Errorf("%d to %d: %s", again.From, again.To, onlyIn(sortedDelta(again), sortedDelta(d)))
	}
	for _, bad := range [][2][]Record{{nil, records[1]}, {records[0][1:], records[1]}, {records[0], {{Owner: records[1][0].Owner, Type: wire.TypeSOA, RData: []byte{0, 0}}}}} {
		if _, err := NewDelta(old.Origin(), bad[0], bad[1]); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// TestSignedTwice: a signature that is given twice is one record, and a delta that removes it can be applied.
func TestSignedTwice(t *testing.T) {
	soa := wireOf(t, "example.org. 60 IN SOA ns. host. 1 2 3 4 5")
	sig := wireOf(t, "example.org. 60 IN RRSIG SOA 15 2 60 20300101000000 20200101000000 1 example.org. AAAA").RData
	first, err := rebuilt(t, map[string]Record{"soa": soa}).Growing()
	if err != nil {
		t.Fatal(err)
	}
	change := func(z *Zone, sigs ...[]byte) (*Zone, *Delta) {
		t.Helper()
		c := z.Change()
		if err := c.At(z.origin).Sign(soa.Type, sigs); err != nil {
			t.Fatal(err)
		}
		next, d, err := c.Zone()
		if err != nil {
			t.Fatal(err)
		}
		return next, d
	}
	signed, _ := change(first, sig, sig)
	if n := signed.Records(); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
	_, gone := change(signed)
	again, _ := change(first, sig)
	if err := again.Change().Apply(gone); err != nil {
		t.Error(err)
	}
}

// A delta that was written when zones had records of types that are for messages can be applied to one that was built
// since, without them.
func TestDeltaWithMetaType(t *testing.T) {
	b, _ := builder()
	put(t, b, soaText)
	old, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if old, err = old.Growing(); err != nil {
		t.Fatal(err)
	}
	meta := Record{Owner: wire.MustName("x.example.org."), Type: dns.TypeOPT, TTL: 60}
	begun := old.Change()
	if err := begun.Add(meta); err != nil {
		t.Fatal(err)
	}
	had, added, err := begun.Zone()
	if err != nil || added.Added != 2 {
		t.Fatalf("%v, %v", added, err)
	}
	next := had.Change()
	if err := next.Remove(meta); err != nil {
		t.Fatal(err)
	}
	host := wireOf(t, "y.example.org. 60 IN A 192.0.2.1")
	if err := next.Add(host); err != nil {
		t.Fatal(err)
	}
	_, removed, err := next.Zone()
	if err != nil || removed.Removed != 2 {
		t.Fatalf("%v, %v", removed, err)
	}
	for i, d := range []*Delta{added, removed} {
		c, e := old.Change(), old.Edit(t.Logf)
		if err := c.Apply(d); err != nil {
			t.Fatal(err)
		}
		if err := e.Apply(d); err != nil {
			t.Fatal(err)
		}
		shared, _, err := c.Zone()
		made, err2 := e.Build()
		if err != nil || err2 != nil || shared.Records() != 1+i || made.Records() != 1+i {
			t.Errorf("delta %d: %v, %v\n%s\n%s", i, err, err2, dump(shared), dump(made))
		}
	}
}
