package zone

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// The first walk sorts the names; meanwhile others ask for the size.
func TestSizeDuringFirstWalk(t *testing.T) {
	z := build(t, "example.org.", apex+"a A 192.0.2.1\nb A 192.0.2.2\n")
	small := z.Size()
	done := make(chan int)
	go func() {
		n := 0
		for w := z.Transfer(); ; n++ {
			if _, ok := w.Next(); !ok {
				break
			}
		}
		done <- n
	}()
	if n := z.Size(); n != small && n != small+4*z.Names() {
		t.Errorf("size %d, at first %d", n, small)
	}
	<-done
	if n := z.Size(); n != small+4*z.Names() {
		t.Errorf("size %d with %d names in order, at first %d", n, z.Names(), small)
	}
}

// lines is what a walk gives, a line for each record.
func lines(t testing.TB, w *Walk) (all []string) {
	t.Helper()
	for rec, ok := w.Next(); ok; rec, ok = w.Next() {
		rr, err := rec.RR()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Join(strings.Fields(rr.String()), " "))
	}
	return all
}

const walked = apex + "z A 192.0.2.1\n*.b TXT x\nb MX 5 z\na.b TXT y\nYLJ.b TXT x\nb.a TXT deep\nsub NS ns.sub\nns.sub A 192.0.2.2\nz RRSIG A 13 3 300 20450101000000 20200101000000 1 example.org. eno=\n"

func TestWalk(t *testing.T) {
	z := build(t, "example.org.", walked)
	var owners []string
	for _, l := range lines(t, z.Walk()) {
		f := strings.Fields(l)
		owners = append(owners, f[0]+" "+f[3])
	}
	want := []string{"example.org. NS", "example.org. NS", "example.org. SOA", "b.a.example.org. TXT", "b.example.org. MX", "*.b.example.org. TXT",
		"a.b.example.org. TXT", "ylj.b.example.org. TXT", "ns1.example.org. A", "ns1.example.org. AAAA", "sub.example.org. NS", "ns.sub.example.org. A",
		"z.example.org. A", "z.example.org. RRSIG"}
	if !slices.Equal(owners, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(owners, "\n"), strings.Join(want, "\n"))
	}
	all := lines(t, z.Transfer())
	if len(all) != z.Records()+1 || !strings.Contains(all[0], "SOA") || all[len(all)-1] != all[0] {
		t.Errorf("transfer of %d records, zone of %d: first %s, last %s", len(all), z.Records(), all[0], all[len(all)-1])
	}
	inner, whole := slices.Sorted(slices.Values(all[1:])), slices.Sorted(slices.Values(lines(t, z.Walk())))
	if !slices.Equal(inner, whole) {
		t.Errorf("transfer\n%s\nwalk\n%s", strings.Join(inner, "\n"), strings.Join(whole, "\n"))
	}
}

// TestFill takes a transfer apart into messages of any size, and reads them as a client would.
func TestFill(t *testing.T) {
	z := build(t, "example.org.", signedZone)
	want := lines(t, z.Transfer())
	for _, question := range []string{"example.org.", "EXAMPLE.org.", "other.test."} {
		m := new(dns.Msg).SetAxfr(question)
		var q wire.Query
		if err := q.SetMsg(m, wire.Peer{Limit: 65535}); err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{1, 200, 517, 1000, 16384, 65535} {
			var w wire.Reply
			walk := z.Transfer()
			var got []string
			for messages, more := 0, true; more; messages++ {
				w.Reset(make([]byte, 0, 512))
				w.Begin(&q)
				more = walk.Fill(&w, limit)
				reply := new(dns.Msg)
				if err := reply.Unpack(w.Finish(&q, 0)); err != nil {
					t.Fatalf("limit %d, message %d: %v", limit, messages, err)
				}
				if len(w.Bytes()) > limit && len(reply.Answer) != 1 {
					t.Errorf("limit %d: %d octets with %d records", limit, len(w.Bytes()), len(reply.Answer))
				}
				for _, rr := range reply.Answer {
					got = append(got, strings.Join(strings.Fields(rr.String()), " "))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("limit %d:\n%s\nwant\n%s", limit, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

func BenchmarkTransfer(b *testing.B) {
	bu := NewBuilder(wire.MustName("example.org"), b.Logf)
	soa, _ := dns.NewRR("example.org. 5 SOA a. b. 1 2 3 4 5")
	bu.AddRR(soa)
	const n = 100000
	for i := range n {
		bu.Add(wire.MustName(fmt.Sprintf("h%d.example.org", i)), wire.TypeA, 5, []byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
	}
	z, _ := bu.Build()
	var q wire.Query
	q.SetMsg(new(dns.Msg).SetAxfr("example.org."), wire.Peer{})
	var w wire.Reply
	buf := make([]byte, 0, 20000)
	z.ordered()
	b.ReportAllocs()
	for b.Loop() {
		walk := z.Transfer()
		for more := true; more; {
			w.Reset(buf)
			w.Begin(&q)
			more = walk.Fill(&w, 16384)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
}
