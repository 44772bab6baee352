package wire

import (
	"math/rand/v2"
	"testing"

	"github.com/miekg/dns"
)

// records that point into each other.
var pointed = []string{
	"www.example.org. 300 IN CNAME web.example.org.",
	"web.example.org. 300 IN CNAME deep.in.the.zone.example.net.",
	"deep.in.the.zone.example.net. 60 IN A 192.0.2.1",
	"deep.in.the.zone.example.net. 60 IN AAAA 2001:db8::1",
	"deep.in.the.zone.example.net. 60 IN A 192.0.2.2",
	"other.example.com. 60 IN A 192.0.2.3",
	"other.example.com. 61 IN TXT text",
	"mail.example.com. 62 IN MX 10 mx.mail.example.com.",
	"mail.example.com. 62 IN MX 20 mx2.mail.example.com.",
	"example.com. 63 IN SOA ns.example.com. root.example.com. 1 2 3 4 5",
	"mx2.mail.example.com. 5 CH HINFO a b",
	"_a._udp.example.com. 64 IN SRV 1 2 3 mx.mail.example.com.",
	"example.com. 65 IN NS mx.mail.example.com.",
}

func TestReorder(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 0)
	var w Reply
	rewritten, moved := 0, 0
	for round := range 2000 {
		r := rand.New(rand.NewPCG(1, uint64(round)))
		w.Reset(make([]byte, 0, 4096))
		w.Begin(q)
		var sections [3][]dns.RR
		for s := range sections {
			for range r.IntN(6) {
				rr, err := dns.NewRR(pointed[r.IntN(len(pointed))])
				if err != nil {
					t.Fatal(err)
				}
				if err := w.RR(Section(s), rr); err != nil {
					t.Fatal(err)
				}
				sections[s] = append(sections[s], rr)
			}
		}
		plain := w.PlainLen()
		var order []uint16
		base := 0
		for s, rrs := range sections {
			from := r.Perm(len(rrs))
			if round%3 == 0 { // what loadbalance does: only addresses change places
				from = movableOnly(rrs, r)
			}
			shuffled := make([]dns.RR, len(rrs))
			for i, j := range from {
				order = append(order, uint16(base+j))
				shuffled[i] = rrs[j]
			}
			base += len(rrs)
			sections[s] = shuffled
		}
		length := len(w.Bytes())
		w.Reorder(order)
		m := unpack(t, w.End(End{Limit: MaxMessage}))
		for s, got := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
			if g, want := lines(got), lines(sections[s]); g != want {
				t.Fatalf("round %d, order %v, section %d:\n%swant:\n%s", round, order, s, g, want)
			}
		}
		if w.PlainLen() != plain {
			t.Fatalf("plain length %d, want %d", w.PlainLen(), plain)
		}
		for i := range w.Recs() { // the layout holds, too
			if w.TTL(i) == 0 || w.TTL(i) > 300 {
				t.Fatalf("TTL %d of record %d", w.TTL(i), i)
			}
		}
		if round%3 == 0 {
			moved++
		} else if len(w.Bytes()) != length {
			rewritten++
		}
	}
	if rewritten == 0 || moved == 0 {
		t.Errorf("%d rewritten, %d moved: a way of reordering was not tried", rewritten, moved)
	}
}

func movableOnly(rrs []dns.RR, r *rand.Rand) []int {
	from := make([]int, len(rrs))
	var places []int
	for i, rr := range rrs {
		if from[i] = i; rr.Header().Rrtype == dns.TypeA {
			places = append(places, i)
		}
	}
	r.Shuffle(len(places), func(i, j int) {
		a, b := places[i], places[j]
		from[a], from[b] = from[b], from[a]
	})
	return from
}

func BenchmarkReorder(b *testing.B) {
	q := query(b, "www.example.org.", TypeA, 0)
	var w Reply
	w.Reset(make([]byte, 0, 4096))
	w.Begin(q)
	var order []uint16
	for i := range 10 {
		w.Record(Answer, q.Name(), TypeA, ClassIN, 5, []byte{192, 0, 2, byte(i)})
		order = append(order, uint16((i+1)%10))
	}
	b.ReportAllocs()
	for b.Loop() {
		w.Reorder(order)
	}
}
