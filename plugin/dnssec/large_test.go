package dnssec

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/cache"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// manySets is a reply with n RRsets in a section.
func manySets(n int, section func(m *dns.Msg) *[]dns.RR) *dns.Msg {
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeMX)
	m.Response, m.Authoritative = true, true
	m.Answer = []dns.RR{&dns.MX{Hdr: dns.RR_Header{Name: "www.example.org.", Rrtype: dns.TypeMX, Class: dns.ClassINET, Ttl: 60}, Mx: "mail.example.org."}}
	to := section(m)
	for i := range n {
		h := dns.RR_Header{Name: fmt.Sprintf("m%d.example.org.", i), Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}
		*to = append(*to, &dns.A{Hdr: h, A: []byte{192, 0, byte(i >> 8), byte(i)}})
	}
	return m
}

func answerOf(m *dns.Msg) *[]dns.RR    { return &m.Answer }
func authorityOf(m *dns.Msg) *[]dns.RR { return &m.Ns }
func extraOf(m *dns.Msg) *[]dns.RR     { return &m.Extra }

// octets is what a client gets of a reply.
func octets(t *testing.T, m *dns.Msg, limit int) []byte {
	t.Helper()
	var w wire.Reply
	if err := w.SetMsg(m); err != nil {
		t.Fatal(err)
	}
	return w.End(wire.EndMsg(m, limit))
}

// Nothing is signed that no message has room for, and clients get what they get if all is signed.
func TestNotSignedInVain(t *testing.T) {
	const all = 1500
	key := pair(t, "example.org.", dns.ED25519, 256, 257) // makes one signature of one set
	for what, section := range map[string]func(m *dns.Msg) *[]dns.RR{"answer": answerOf, "authority": authorityOf, "additional": extraOf} {
		now, res := time.Now(), manySets(all, section)
		d := serving(t, nil, key)
		whole := &signing{d: &d, w: &test.ResponseWriter{}, now: now, server: "whole", octets: -1 << 30}
		want := whole.sign(res)
		if n := len(want.Answer) + len(want.Ns) + len(want.Extra); n < 2*all {
			t.Fatalf("%s: %d records, not all is signed", what, n)
		}
		d = serving(t, nil, key)
		got := d.Sign(request.Request{W: &test.ResponseWriter{}, Req: res}, now, "in vain "+what)
		if n := testutil.ToFloat64(d.sigs.countsOf("in vain " + what).misses); n < 500 || n > 800 {
			t.Errorf("%s: %v sets are signed, of which about 550 fit", what, n)
		}
		for _, limit := range []int{512, 1232, 4096, dns.MaxMsgSize} {
			if a, b := octets(t, got, limit), octets(t, want, limit); !bytes.Equal(a, b) {
				t.Errorf("%s, limit %d: %d octets, and %d if all is signed", what, limit, len(a), len(b))
			}
		}
	}
}

// The OPT record of a reply stays, whatever is left out: a cache above reads for which clients the reply is.
func TestOptionsOfLargeReply(t *testing.T) {
	res := manySets(5000, answerOf)
	res.SetEdns0(1232, true)
	opt := res.IsEdns0()
	d := serving(t, nil, pair(t, "example.org.", dns.ED25519, 256, 257))
	got := d.Sign(request.Request{W: &test.ResponseWriter{}, Req: res}, time.Now(), "options")
	if len(got.Answer) > 2000 || len(got.Extra) != 1 || got.IsEdns0() != opt {
		t.Errorf("%d answers, additional %v", len(got.Answer), got.Extra)
	}
}

// Records of one set are one set wherever they stand, in whatever case, and however many sets there are.
func TestSetsOfManyRecords(t *testing.T) {
	for _, n := range []int{1, fewSets, fewSets + 1, 50} {
		var records []dns.RR
		for round := range 3 {
			for i := range n {
				name := fmt.Sprintf("m%d.example.org.", i)
				if round == 1 {
					name = fmt.Sprintf("M%d.eXample.org.", i)
				}
				for _, class := range []uint16{dns.ClassINET, dns.ClassCHAOS} {
					h := dns.RR_Header{Name: name, Rrtype: dns.TypeTXT, Class: class, Ttl: 60}
					records = append(records, &dns.TXT{Hdr: h, Txt: []string{fmt.Sprint(round)}})
				}
			}
		}
		sets := rrsets(records)
		if len(sets) != 2*n {
			t.Fatalf("%d sets, want %d", len(sets), 2*n)
		}
		for i, set := range sets {
			for round, rr := range set {
				if len(set) != 3 || rr != records[2*n*round+i] {
					t.Fatalf("of %d sets: set %d is %v", 2*n, i, set)
				}
			}
		}
	}
}

// What has a signature already gets no other, among many.
func TestManySigned(t *testing.T) {
	d := serving(t, nil)
	s := &signing{d: &d, w: &test.ResponseWriter{}, now: time.Now(), server: "signed"}
	m := manySets(50, extraOf)
	m.Extra = append(m.Extra, &dns.RRSIG{Hdr: dns.RR_Header{Name: "M7.example.org.", Rrtype: dns.TypeRRSIG, Class: dns.ClassINET, Ttl: 60}, TypeCovered: dns.TypeA, SignerName: "m7.example.org."})
	if n := len(s.sign(m).Extra); n != 50+1+49 {
		t.Errorf("%d records, want %d", n, 50+1+49)
	}
}

func BenchmarkManySets(b *testing.B) {
	for name, d := range map[string]Dnssec{
		"P-256": serving(b, nil), "RSA": serving(b, nil, pair(b, "example.org.", dns.RSASHA256, 2048, 257)),
	} {
		res := manySets(1500, extraOf)
		for _, kept := range []bool{false, true} {
			b.Run(fmt.Sprint(name, "/kept=", kept), func(b *testing.B) {
				for b.Loop() {
					if !kept {
						d.sigs.cache = cache.New[[]dns.RR](2000)
					}
					d.Sign(request.Request{W: &test.ResponseWriter{}, Req: res}, time.Now(), "large")
				}
			})
		}
	}
}
