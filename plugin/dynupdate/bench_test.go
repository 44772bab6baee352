package dynupdate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// manyHosts is a master file with so many names.
func manyHosts(hosts int) string {
	var b strings.Builder
	b.WriteString("$ORIGIN example.org.\n$TTL 300\n@ SOA ns1 h 1 7200 3600 1209600 60\n@ NS ns1\nns1 A 192.0.2.53\n")
	for i := range hosts {
		fmt.Fprintf(&b, "host%d A 192.0.2.%d\n", i, i%250)
	}
	return b.String()
}

// questions is packets that ask for hosts at random; some of them do not exist. Of a large zone they ask for so many
// that what they need is not in the processor's caches.
func questions(tb testing.TB, hosts int) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([][]byte, max(4096, hosts/4))
	for i := range all {
		packed, err := new(dns.Msg).SetQuestion(fmt.Sprintf("host%d.example.org.", r.IntN(hosts+hosts/10)), dns.TypeA).Pack()
		if err != nil {
			tb.Fatal(err)
		}
		all[i] = packed
	}
	return all
}

// BenchmarkQuery is queries in the wire lane, of a zone that file has, of the same one here, and of one that was changed all over.
func BenchmarkQuery(b *testing.B) {
	for _, hosts := range []int{1000, 1_000_000} {
		dir := b.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "db"), []byte(manyHosts(hosts)), 0o600); err != nil {
			b.Fatal(err)
		}
		qs := questions(b, hosts)
		fz := file.NewZone("example.org.", filepath.Join(dir, "db"))
		if err := fz.Load(); err != nil {
			b.Fatal(err)
		}
		link := file.Link{Name: "file"}
		b.Run(fmt.Sprint("file/", hosts), func(b *testing.B) {
			ask(b, qs, func(w *wire.Reply, q *wire.Query) wire.Outcome {
				return link.ServeWire(context.Background(), fz, true, w, q)
			})
		})
		bed := newBed(b, dir, fmt.Sprintf("max_records %d\nmax_bytes 1000000000", 10*hosts+100))
		serve := func(w *wire.Reply, q *wire.Query) wire.Outcome { return bed.d.ServeWire(context.Background(), w, q) }
		b.Run(fmt.Sprint("dynupdate/", hosts), func(b *testing.B) { ask(b, qs, serve) })
		r := rand.New(rand.NewPCG(3, 4))
		for range 20_000 {
			bed.put(b, r.IntN(hosts))
		}
		b.Run(fmt.Sprint("dynupdate changed/", hosts), func(b *testing.B) { ask(b, qs, serve) })
	}
}

// TestUpdateGarbage: an update leaves little for the collector, for queries wait while it works: less than ten
// kilobytes in a zone of 100,000 names, though each update makes a version of its own.
func TestUpdateGarbage(t *testing.T) {
	const hosts, updates, most = 100_000, 2000, 10_000
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "db"), []byte(manyHosts(hosts)), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, dir, fmt.Sprintf("max_records %d\nmax_bytes 1000000000\nlog off", 10*hosts))
	c := func(n int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			b.put(t, rand.IntN(hosts))
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / uint64(n)
	}
	c(updates)
	if n := c(updates); n > most {
		t.Errorf("an update leaves %d octets, at most %d are fine", n, most)
	}
}

// put changes the address of a host.
func (b *bed) put(tb testing.TB, host int) {
	tb.Helper()
	rr, err := dns.NewRR(fmt.Sprintf("host%d.example.org. 300 IN A 192.0.2.%d", host, counter.Add(1)%250))
	if err != nil {
		tb.Fatal(err)
	}
	add := recordOf(withLength(rr))
	clear := record{owner: add.owner, typ: add.typ, class: dns.ClassANY}
	u := decision{d: b.d, message: &message{updates: []record{clear, add}}}
	u.by.Key = "key."
	if err := b.d.store.update(func(c *zone.Change) bool {
		u.c = c
		_, ok := u.run()
		return ok
	}, func(*zone.Zone, *zone.Delta) bool { return true }); err != nil {
		tb.Fatal(err)
	}
}

var counter atomic.Int64

func ask(b *testing.B, qs [][]byte, serve func(*wire.Reply, *wire.Query) wire.Outcome) {
	var q wire.Query
	var w wire.Reply
	buf := make([]byte, 0, 2048)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if !q.Parse(qs[i%len(qs)]) {
			b.Fatal("it is no query")
		}
		w.Reset(buf)
		if serve(&w, &q) != wire.Done {
			b.Fatal("it is not done")
		}
	}
}

// BenchmarkUpdate is updates of one record each: without a database, and with one, by one writer and by 16.
func BenchmarkUpdate(b *testing.B) {
	for _, hosts := range []int{1000, 1_000_000} {
		dir := b.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "db"), []byte(manyHosts(hosts)), 0o600); err != nil {
			b.Fatal(err)
		}
		limits := fmt.Sprintf("max_records %d\nmax_bytes 1000000000\nlog off", 10*hosts+100)
		for _, kind := range []struct {
			name, options string
			writers       int
		}{{"memory", "", 1}, {"database", "\ndatabase " + dir + "/zone.db", 1}, {"database 16", "\ndatabase " + dir + "/zone.db", 16}} {
			bed := newBed(b, dir, limits+kind.options)
			b.Run(fmt.Sprint(kind.name, "/", hosts), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(kind.writers)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						bed.put(b, rand.IntN(hosts))
					}
				})
			})
			bed.stop()
		}
	}
}

// TestQueryAllocations: a query allocates nothing, whatever was changed before.
func TestQueryAllocations(t *testing.T) {
	b := newBed(t, t.TempDir(), "")
	for i := range 100 {
		b.put(t, i)
	}
	qs := questions(t, 100)
	var q wire.Query
	var w wire.Reply
	buf := make([]byte, 0, 2048)
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		if !q.Parse(qs[i%len(qs)]) {
			t.Fatal("it is no query")
		}
		w.Reset(buf)
		b.d.ServeWire(context.Background(), &w, &q)
		i++
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
