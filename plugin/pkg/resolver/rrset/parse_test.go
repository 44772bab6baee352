package rrset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func pack(t testing.TB, compress bool, sections ...string) []byte {
	t.Helper()
	m := new(dns.Msg).SetQuestion("www.Example.org.", dns.TypeA)
	m.Response, m.Compress = true, compress
	for i, text := range sections {
		for line := range strings.Lines(text) {
			rr, err := dns.NewRR(line)
			if err != nil {
				t.Fatal(err)
			}
			switch i {
			case Answer:
				m.Answer = append(m.Answer, rr)
			case Authority:
				m.Ns = append(m.Ns, rr)
			default:
				m.Extra = append(m.Extra, rr)
			}
		}
	}
	m.SetEdns0(1232, true)
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const sig = " RRSIG A 13 3 300 20300101000000 20200101000000 1 example.org. AAAA\n"

func TestParse(t *testing.T) {
	for _, compress := range []bool{false, true} {
		b := pack(t, compress,
			"www.example.org. 300 IN CNAME Web.Example.org.\nweb.example.org. 100 IN A 192.0.2.1\nWEB.example.org. 50 IN A 192.0.2.2\nweb.example.org. 60 IN A 192.0.2.1\n",
			"example.org. 300 IN SOA ns.example.org. x.example.org. 1 2 3 4 77\nexample.org. 300 IN NS ns.example.org.\n",
			"ns.example.org. 300 IN A 192.0.2.53\nweb.example.org. 100 IN"+sig)
		m, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if m.Name != MustName("www.example.org.") || m.Type != 1 || !m.EDNS || m.Size != len(b) {
			t.Errorf("question %q %d, EDNS %v, %d octets", m.Name, m.Type, m.EDNS, m.Size)
		}
		a := m.Section[Answer]
		if len(a) != 2 || a[0].Type != dns.TypeCNAME || Target(a[0].First()) != MustName("web.example.org.") {
			t.Fatalf("answer %v", a)
		}
		if s := a[1]; s.N != 2 || s.TTL != 50 || s.Sigs != 1 || Address(s.First()).String() != "192.0.2.1" {
			t.Errorf("the RRset %+v: levelled TTL, no record twice, and the signature from another section", s)
		}
		if s := m.Section[Authority][0]; SOAMinimum(s.First()) != 77 {
			t.Errorf("minimum %d", SOAMinimum(s.First()))
		}
		if n := len(m.Section[Additional]); n != 1 {
			t.Errorf("%d sets in the additional section, want 1: the OPT record and the signature are none", n)
		}
	}
}

// A signature that stands there twice is one, and takes no place of others.
func TestSignaturesTwice(t *testing.T) {
	m, err := Parse(pack(t, true, "www.example.org. 300 IN A 192.0.2.1\n"+strings.Repeat("www.example.org. 300 IN"+sig, MaxSigs)+"www.example.org. 300 IN"+strings.Replace(sig, "AAAA", "BBBB", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if s := m.Section[Answer][0]; s.Sigs != 2 {
		t.Errorf("%d signatures, want 2", s.Sigs)
	}
}

// No RRset lives longer than its signatures say that it was meant to, in whatever order they stand (RFC 4035 §5.3.3).
func TestOriginalTTL(t *testing.T) {
	a, s := "www.example.org. 5000 IN A 192.0.2.1\n", "www.example.org. 5000 IN"+sig
	for what, sections := range map[string][]string{"after": {a + s}, "before": {s + a}, "in another section": {a, "", s}} {
		m, err := Parse(pack(t, true, sections...))
		if err != nil || len(m.Section[Answer]) != 1 || m.Section[Answer][0].TTL != 300 {
			t.Errorf("signature %s: %v, %+v", what, err, m.Section[Answer])
		}
	}
}

func TestParseLimits(t *testing.T) {
	var many, wide strings.Builder
	for i := range MaxRecords + 1 {
		fmt.Fprintf(&many, "www.example.org. 300 IN A 10.0.%d.%d\n", i/256, i%256)
	}
	if _, err := Parse(pack(t, true, many.String())); err != ErrTooMany {
		t.Errorf("%d records of one RRset: %v", MaxRecords+1, err)
	}
	for i := range 12 {
		wide.WriteString("www.example.org. 300 IN" + strings.Replace(sig, " 1 example", fmt.Sprintf(" %d example", i), 1))
	}
	m, err := Parse(pack(t, true, "www.example.org. 300 IN A 192.0.2.1\n"+wide.String()))
	if err != nil || m.Section[0][0].Sigs != MaxSigs {
		t.Errorf("12 signatures: %v", err)
	}
	for cut := range 12 {
		if _, err := Parse(make([]byte, cut)); err == nil {
			t.Errorf("%d octets are a message", cut)
		}
	}
	var names strings.Builder // as many sets as there may be, in time that does not grow with their square
	for i := range maxSets - 1 {
		fmt.Fprintf(&names, "n%d.example.org. 300 IN A 192.0.2.1\n", i)
	}
	b, began := pack(t, true, names.String()), time.Now()
	for range 20 {
		if _, err := Parse(b); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began) / 20; took > 50*time.Millisecond {
		t.Errorf("%d sets take %s", maxSets-1, took)
	}
}

func TestNames(t *testing.T) {
	n := MustName
	if !Below(n("a.example.org."), n("example.org.")) || Below(n("aexample.org."), n("example.org.")) || !Below(n("org."), Root) {
		t.Error("Below")
	}
	if Last(n("a.b.example.org."), 2) != n("example.org.") || Last(n("org."), 5) != n("org.") || Labels(n("a.b.")) != 2 || Labels(Root) != 0 {
		t.Error("Last, Labels")
	}
	if got, ok := Replace(n("a.b.example.org."), n("example.org."), n("net.")); !ok || got != n("a.b.net.") {
		t.Errorf("Replace: %q", got)
	}
	long := strings.Repeat("a234567.", 30)
	if _, ok := Replace(n(long+"org."), n("org."), n(strings.Repeat("b", 20)+".net.")); ok {
		t.Error("a name of more than 255 octets")
	}
	if Parent(Root) != Root || FirstLabel(Root) != "" || Text(n("A.ORG.")) != "a.org." {
		t.Error("the root")
	}
}

func TestSet(t *testing.T) {
	a, b := New("\x00", 1, 10, "\x01\x02\x03\x04", "\x05\x06\x07\x08"), New("\x00", 1, 20, "\x05\x06\x07\x08", "\x01\x02\x03\x04")
	if !a.Same(b) || a.Same(New("\x00", 1, 10, "\x01\x02\x03\x04", "\x05\x06\x07\x09")) {
		t.Error("Same")
	}
	if a.Edited(func(r string) string { return r }) != a || a.Edited(func(string) string { return "" }) != nil {
		t.Error("Edited: none or all")
	}
	c := a.Edited(func(r string) string {
		return strings.Replace(strings.TrimPrefix(r, "\x01\x02\x03\x04"), "\x05", "\x06\x06", 1)
	})
	if c.N != 1 || c.First() != "\x06\x06\x06\x07\x08" || a.N != 2 {
		t.Errorf("Edited: %+v", c)
	}
	if a.WithTTL(10) != a || a.WithTTL(9).TTL != 9 || a.TTL != 10 {
		t.Error("WithTTL")
	}
}

// What miekg/dns can unpack is read with the same records; nothing makes the parser panic.
func FuzzParse(f *testing.F) {
	f.Add(pack(f, true, "www.example.org. 300 IN CNAME web.example.org.\nweb.example.org. 100 IN A 192.0.2.1\n", "example.org. 300 IN NS ns.example.org.\n", ""))
	f.Add(pack(f, false, "www.example.org. 300 IN MX 5 a.example.org.\nwww.example.org. 300 IN SRV 1 2 3 a.example.org.\n", "", ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		var o dns.Msg
		if o.Unpack(b) != nil || len(o.Question) != 1 {
			return
		}
		want := map[uint16]bool{}
		for _, rr := range o.Answer {
			if h := rr.Header(); h.Class == dns.ClassINET && h.Rrtype != dns.TypeOPT && h.Rrtype != dns.TypeRRSIG {
				want[h.Rrtype] = true
			}
		}
		got := map[uint16]bool{}
		for _, s := range m.Section[Answer] {
			if s.Type != dns.TypeRRSIG {
				got[s.Type] = true
			}
			s.Each(func(r string) bool { return len(r) >= 0 })
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("types %v, miekg/dns has %v", got, want)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	msg := pack(b, true, "www.example.org. 300 IN A 192.0.2.1\n", "", "")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(msg); err != nil {
			b.Fatal(err)
		}
	}
}

// Signatures of one RRset may stand in two sections: all of them are its.
func TestSignaturesApart(t *testing.T) {
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	sig := func(tag uint16) dns.RR {
		return &dns.RRSIG{
			Hdr: dns.RR_Header{Name: "www.example.org.", Rrtype: dns.TypeRRSIG, Class: 1, Ttl: 60}, TypeCovered: dns.TypeA, Algorithm: 13, Labels: 3, OrigTtl: 60,
			KeyTag: tag, SignerName: "example.org.", Signature: "AAAA",
		}
	}
	a, err := dns.NewRR("www.example.org. 60 IN A 192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	m.Answer, m.Extra = []dns.RR{a, sig(1)}, []dns.RR{sig(2)}
	for i := range MaxSigs {
		m.Ns = append(m.Ns, sig(uint16(3+i)))
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(b)
	if err != nil || len(got.Section[Answer]) != 1 || got.Section[Answer][0].Sigs != 2 {
		t.Fatalf("%v, %+v", err, got.Section[Answer])
	}
}

// Of what there can be one of, the first counts.
func TestSingletons(t *testing.T) {
	m, err := Parse(pack(t, true, "www.example.org. 300 IN CNAME a.example.org.\nwww.example.org. 60 IN CNAME b.example.org.\n"+
		"d.example.org. 300 IN DNAME a.example.org.\nd.example.org. 300 IN DNAME b.example.org.\nwww.example.org. 300 IN CNAME c.example.org.\n",
		"example.org. 300 IN SOA a. b. 1 2 3 4 5\nexample.org. 300 IN SOA a. b. 2 2 3 4 5\n", "a.example.org. 1 IN MX 1 a.\na.example.org. 1 IN MX 2 a.\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for i := range m.Section {
		for _, s := range m.Section[i] {
			got += fmt.Sprintf("%s %d %d, ", dns.Type(s.Type), s.N, s.TTL)
			if s.Type == dns.TypeCNAME && Target(s.First()) != MustName("a.example.org.") {
				t.Errorf("the alias leads to %s", Text(Target(s.First())))
			}
		}
	}
	if want := "CNAME 1 300, DNAME 1 300, SOA 1 300, MX 2 1, "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
