package zone

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// askLarge asks over a stream. more, if not nil, is called where the answer leads out of the zone.
func askLarge(t *testing.T, z *Zone, name string, typ uint16, more func(w *wire.Reply)) *dns.Msg {
	t.Helper()
	var q wire.Query
	if err := q.SetMsg(new(dns.Msg).SetQuestion(name, typ), wire.Peer{Proto: wire.TCP, Limit: wire.MaxMessage}); err != nil {
		t.Fatal(err)
	}
	var w wire.Reply
	w.Reset(nil)
	var a Answerer
	if r := a.Answer(z, &w, &q); r == External && more != nil {
		more(&w)
		a.End(Hit)
	}
	m := new(dns.Msg)
	if err := m.Unpack(w.Finish(&q, wire.MaxMessage)); err != nil {
		t.Fatalf("%s %s: %v", name, dns.TypeToString[typ], err)
	}
	return m
}

// Over a stream a reply is whole that fits when names are as short as they can be, though it does not as the zone has
// them; however the question is written.
func TestLongReplyIsWhole(t *testing.T) {
	var text strings.Builder
	text.WriteString(apex)
	for i := range 1700 {
		fmt.Fprintf(&text, "ptr PTR host-%d.some-long-zone-name-%d.example.net.\n", i, i%150)
		fmt.Fprintf(&text, "*.wild PTR host-%d.some-long-zone-name-%d.example.net.\n", i, i%150)
		fmt.Fprintf(&text, "all PTR host-%d.some-long-zone-name-%d.example.net.\n", i, i%150)
	}
	text.WriteString("all A 192.0.2.1\nall TXT text\nalias CNAME ptr\nd DNAME d2\nx.d2 CNAME ptr\n")
	for i := range 1300 {
		fmt.Fprintf(&text, "mail MX 10 host-%d.mail\nhost-%d.mail A 192.0.%d.%d\n", i, i, i>>8, i&0xFF)
	}
	for i := range 60 {
		fmt.Fprintf(&text, "srv SRV 1 1 %d host-%d.mail\n", i, i%30)
	}
	z := build(t, "example.org.", text.String())
	for _, tc := range []struct {
		name          string
		typ           uint16
		answer, extra int
	}{
		{"ptr.example.org.", dns.TypePTR, 1700, 0},
		{"x.wild.example.org.", dns.TypePTR, 1700, 0},
		{"alias.example.org.", dns.TypePTR, 1701, 0},
		{"x.d.example.org.", dns.TypePTR, 1703, 0},
		{"all.example.org.", dns.TypeANY, 1702, 0},
		{"mail.example.org.", dns.TypeMX, 1300, 1300},
		{"srv.example.org.", dns.TypeSRV, 60, 30},
	} {
		for _, name := range []string{tc.name, strings.Replace(tc.name, "example", "eXample", 1), strings.ToUpper(tc.name[:1]) + tc.name[1:]} {
			m := askLarge(t, z, name, tc.typ, nil)
			extra := 0
			seen := map[string]bool{}
			for _, rr := range append(m.Answer, m.Extra...) {
				text := rr.String()
				if seen[text] {
					t.Fatalf("%s: %s comes twice", name, text)
				}
				seen[text] = true
				if strings.Contains(text, ".mail.") && rr.Header().Rrtype == dns.TypeA {
					extra++
				}
			}
			if len(m.Answer) != tc.answer || extra != tc.extra || m.Truncated {
				t.Errorf("%s %s: %d records and %d addresses, TC %v, want %d and %d", name, dns.TypeToString[tc.typ], len(m.Answer), extra, m.Truncated, tc.answer, tc.extra)
			}
		}
	}
}

// What others add at the end of an alias may move records: those of the zone that come afterwards do not point to where
// names stood before.
func TestLongReplyFromElsewhere(t *testing.T) {
	z := build(t, "example.org.", apex+"alias CNAME www.example.net.\n")
	for _, name := range []string{"alias.example.org.", "aLias.eXample.org."} {
		m := askLarge(t, z, name, dns.TypePTR, func(w *wire.Reply) {
			for i := range 1700 {
				rr := &dns.PTR{Hdr: dns.RR_Header{Name: "www.example.net.", Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: 1}, Ptr: fmt.Sprintf("host-%d.some-long-zone-name-%d.example.net.", i, i%150)}
				if err := w.RR(wire.Answer, rr); err != nil {
					t.Fatal(err)
				}
			}
		})
		if len(m.Answer) != 1701 || m.Truncated {
			t.Errorf("%s: %d records, TC %v", name, len(m.Answer), m.Truncated)
		}
		if len(m.Ns) == 0 {
			t.Fatalf("%s: no authority", name)
		}
		for _, rr := range m.Ns {
			if ns, ok := rr.(*dns.NS); !ok || rr.Header().Name != "example.org." || !strings.HasSuffix(ns.Ns, ".example.org.") && !strings.HasSuffix(ns.Ns, ".example.net.") {
				t.Errorf("%s: authority %v", name, rr)
			}
		}
	}
}

// Sets of thousands of records, over a stream and cut to what a datagram takes.
func BenchmarkLarge(b *testing.B) {
	var text strings.Builder
	text.WriteString(apex)
	for i := range 2500 {
		fmt.Fprintf(&text, "mail MX 10 host-%d.mail\nhost-%d.mail A 192.0.%d.%d\n", i, i, i>>8, i&0xFF)
		fmt.Fprintf(&text, "ptr PTR host-%d.some-long-zone-name-%d.example.net.\n", i, i%150)
		fmt.Fprintf(&text, "cut NS ns-%d.cut\nns-%d.cut A 192.0.%d.%d\n", i, i, i>>8, i&0xFF)
	}
	z := build(b, "example.org.", text.String())
	for _, tc := range []struct {
		name string
		typ  uint16
	}{{"mail.example.org.", dns.TypeMX}, {"ptr.example.org.", dns.TypePTR}, {"cut.example.org.", dns.TypeA}} {
		for _, limit := range []uint16{1232, wire.MaxMessage} {
			b.Run(fmt.Sprint(dns.TypeToString[tc.typ], "/", limit), func(b *testing.B) {
				var q wire.Query
				if err := q.SetMsg(new(dns.Msg).SetQuestion(tc.name, tc.typ).SetEdns0(1232, false), wire.Peer{Limit: limit}); err != nil {
					b.Fatal(err)
				}
				var w wire.Reply
				var a Answerer
				buf := make([]byte, 0, 4096)
				for b.Loop() {
					w.Reset(buf)
					a.Answer(z, &w, &q)
					w.Finish(&q, 1232)
				}
			})
		}
	}
}
