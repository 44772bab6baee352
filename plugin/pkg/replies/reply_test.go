package replies

import (
	"encoding/hex"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/packed"

	"github.com/miekg/dns"
)

// Each kind of reply is proper, and the usual ones are so without the slow way.
func TestInspectProper(t *testing.T) {
	ordinary := []string{
		"www.example.org. 300 IN A 192.0.2.1",
		"www.example.org. 300 IN AAAA 2001:db8::1",
		"www.example.org. 300 IN CNAME web.example.org.",
		"example.org. 300 IN NS ns.example.org.",
		"1.2.0.192.in-addr.arpa. 300 IN PTR www.example.org.",
		"example.org. 300 IN DNAME example.net.",
		"example.org. 300 IN MX 10 mail.example.org.",
		"_a._tcp.example.org. 300 IN SRV 1 2 53 www.example.org.",
		"example.org. 300 IN SOA ns.example.org. hostmaster.example.org. 1 7200 3600 1209600 300",
		`example.org. 300 IN TXT "one" "" "three"`,
		"example.org. 300 IN RRSIG A 13 2 300 20300101000000 20200101000000 1234 example.org. AAAA",
		"example.org. 300 IN DS 1234 13 2 AAAA",
		"example.org. 300 IN DNSKEY 257 3 13 AAAA",
	}
	for _, rr := range ordinary {
		b := packed.Message(t, "www.example.org.", dns.TypeA, packed.Answer(rr))
		in, v := Inspect(b)
		if v != Proper || in.Answers != 1 || in.Rcode != 0 || in.TC {
			t.Errorf("%s: %v %+v", rr, v, in)
		}
		if _, ok := walk(b, in.QuestionEnd); !ok {
			t.Errorf("%s takes the slow way", rr)
		}
	}
	for _, rr := range []string{
		"example.org. 300 IN HTTPS 1 . alpn=h2",
		"example.org. 300 IN NSEC a.example.org. A RRSIG NSEC",
		`example.org. 300 IN CAA 0 issue "ca.example.org"`,
		"example.org. 300 IN TYPE65280 \\# 3 abcdef",
	} {
		if in, v := Inspect(packed.Message(t, "www.example.org.", dns.TypeA, packed.Answer(rr))); v != Proper || in.Answers != 1 {
			t.Errorf("%s: %v %+v", rr, v, in)
		}
	}
}

func TestInspectFacts(t *testing.T) {
	ede := func(m *dns.Msg) {
		packed.Reply(m)
		m.SetEdns0(1232, true)
		m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_EDE{InfoCode: 22, ExtraText: "no"}, &dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: "ab"})
	}
	for name, tc := range map[string]struct {
		b    []byte
		want Facts
	}{
		"NXDOMAIN":      {packed.Message(t, "a.example.org.", 1, packed.Reply, func(m *dns.Msg) { m.Rcode = dns.RcodeNameError }), Facts{Rcode: 3}},
		"TC":            {packed.Message(t, "a.example.org.", 1, packed.Reply, func(m *dns.Msg) { m.Truncated = true }), Facts{TC: true}},
		"BADCOOKIE":     {packed.Message(t, "a.example.org.", 1, ede, func(m *dns.Msg) { m.Rcode = dns.RcodeBadCookie }), Facts{Rcode: 23}},
		"root question": {packed.Message(t, ".", dns.TypeNS, packed.Answer(". 1 IN NS a.")), Facts{Answers: 1}},
	} {
		in, v := Inspect(tc.b)
		if opt := FindOPT(tc.b); int(in.OPT) != opt {
			t.Errorf("%s: the OPT record is at %d, said to be at %d", name, opt, in.OPT)
		}
		if in.OPT = 0; v != Proper || in.Facts != tc.want {
			t.Errorf("%s: %v %+v, want %+v", name, v, in.Facts, tc.want)
		}
	}
}

func TestInspectImproper(t *testing.T) {
	good := packed.Message(t, "www.example.org.", dns.TypeA, packed.Answer("www.example.org. 300 IN A 192.0.2.1", "www.example.org. 300 IN A 192.0.2.2"))
	change := func(at int, to ...byte) []byte {
		b := append([]byte(nil), good...)
		copy(b[at:], to)
		return b
	}
	for name, tc := range map[string]struct {
		b    []byte
		want Verdict
	}{
		"nothing":               {nil, TooShort},
		"a header":              {good[:12], TooShort},
		"half a question":       {good[:20], TooShort},
		"a question cut":        {good[:31], TooShort},
		"no question":           {change(4, 0, 0), TooShort},
		"two questions":         {change(4, 0, 2), TooShort},
		"a query":               {change(2, 1, 0), NotReply},
		"a record cut":          {good[:len(good)-3], CutShort},
		"all records cut":       {good[:33], CutShort},
		"the last record cut":   {good[:49], CutShort},
		"one more counted":      {change(7, 3), CutShort},
		"an authority counted":  {change(9, 1), CutShort},
		"an additional counted": {change(11, 1), Proper},
		"an owner cut":          {good[:len(good)-15], CutShort},
		"a pointer to itself":   {change(33, 0xC0, 33), Malformed},
		"an A of 3 octets":      {change(43, 0, 3), CutShort},
		"a reserved label type": {change(33, 0x80), Malformed},
	} {
		if _, v := Inspect(tc.b); v != tc.want {
			t.Errorf("%s: got %v, want %v\n%s", name, v, tc.want, hex.Dump(tc.b))
		}
	}
}

func TestAnswers(t *testing.T) {
	query := packed.Message(t, "WWW.example.org.", dns.TypeA)
	for name, tc := range map[string]struct {
		b    []byte
		want bool
	}{
		"the same":        {packed.Message(t, "WWW.example.org.", dns.TypeA, packed.Reply), true},
		"other case":      {packed.Message(t, "www.EXAMPLE.org.", dns.TypeA, packed.Reply), true},
		"another name":    {packed.Message(t, "www.example.net.", dns.TypeA, packed.Reply), false},
		"a longer name":   {packed.Message(t, "a.WWW.example.org.", dns.TypeA, packed.Reply), false},
		"a shorter name":  {packed.Message(t, "example.org.", dns.TypeA, packed.Reply), false},
		"another type":    {packed.Message(t, "www.example.org.", dns.TypeAAAA, packed.Reply), false},
		"another class":   {packed.Message(t, "www.example.org.", dns.TypeA, packed.Reply, func(m *dns.Msg) { m.Question[0].Qclass = 3 }), false},
		"no letters fold": {packed.Message(t, "WWW.example\\007org.", dns.TypeA, packed.Reply), false},
	} {
		in, v := Inspect(tc.b)
		if v != Proper {
			t.Fatalf("%s: %v", name, v)
		}
		if got := in.IsFor(tc.b, query); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestEmpty(t *testing.T) {
	b := packed.Message(t, "www.example.org.", dns.TypeA, packed.Answer("www.example.org. 300 IN A 192.0.2.1"), func(m *dns.Msg) {
		m.Rcode, m.RecursionAvailable = dns.RcodeNameError, true
	})
	b = b[:len(b)-2]
	in, v := Inspect(b)
	if v != CutShort {
		t.Fatal(v)
	}
	var m dns.Msg
	if err := m.Unpack(in.Emptied(b)); err != nil {
		t.Fatal(err)
	}
	if !m.Truncated || !in.TC || m.Rcode != dns.RcodeNameError || !m.RecursionAvailable || len(m.Answer) != 0 || len(m.Question) != 1 {
		t.Error(m.String())
	}
}

// Whatever comes, what is accepted for a query unpacks, answers the question, and is what the facts say.
func FuzzReply(f *testing.F) {
	query := packed.Message(f, "www.example.org.", dns.TypeA)
	f.Add(packed.Message(f, "www.example.org.", dns.TypeA, packed.Answer("www.example.org. 300 IN A 192.0.2.1")))
	f.Add(packed.Message(f, "www.example.org.", dns.TypeA, packed.Answer("www.example.org. 300 IN CNAME a.example.org.", "a.example.org. 1 IN RRSIG A 13 2 300 20300101000000 20200101000000 1234 example.org. AAAA")))
	f.Add(packed.Message(f, "WWW.example.ORG.", dns.TypeA, packed.Answer(`www.example.org. 300 IN TXT "a" "b"`, "x.example.org. 1 IN SOA a. b. 1 2 3 4 5", "example.org. 1 IN SRV 1 2 3 a.b."), func(m *dns.Msg) {
		m.SetEdns0(1232, true)
		m.Rcode = dns.RcodeBadCookie
	}))
	f.Add(packed.Message(f, "www.example.org.", dns.TypeA, packed.Answer("example.org. 300 IN HTTPS 1 . alpn=h2", "example.org. 1 IN DS 1 2 3 abcd")))
	f.Add(packed.Message(f, "www.example.org.", dns.TypeA, packed.Answer("example.org. 1 IN HTTPS 1 a. alpn=h2,h3 port=8443 ipv4hint=192.0.2.1 ipv6hint=2001:db8::1 key700=x",
		"a. 1 IN NSEC b.example.org. A RRSIG TYPE700", "a. 1 IN NSEC3 1 0 2 abcd 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR A RRSIG")))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, v := Inspect(b)
		if v > CutShort || !in.IsFor(b, query) {
			return
		}
		if v == CutShort {
			b = in.Emptied(append([]byte(nil), b...))
		}
		var m, q dns.Msg
		if err := m.Unpack(b); err != nil {
			t.Fatalf("%v\n%s", err, hex.Dump(b))
		}
		if err := q.Unpack(query); err != nil {
			t.Fatal(err)
		}
		if len(m.Question) != 1 || !m.Response || m.Question[0].Qtype != dns.TypeA || dns.CanonicalName(m.Question[0].Name) != "www.example.org." {
			t.Fatalf("not the question: %v", m.Question)
		}
		if in.Rcode != m.Rcode || in.TC != m.Truncated || in.Answers != len(m.Answer) || in.ID != m.Id {
			t.Fatalf("facts %+v, message\n%v", in, &m)
		}
	})
}

func BenchmarkInspect(b *testing.B) {
	for name, change := range map[string]func(*dns.Msg){
		"ordinary": packed.Answer("www.example.org. 300 IN CNAME web.example.org.", "web.example.org. 300 IN A 192.0.2.1", "web.example.org. 300 IN A 192.0.2.2"),
		"service":  packed.Answer("www.example.org. 300 IN HTTPS 1 . alpn=h2"),
		"slow":     packed.Answer("www.example.org. 300 IN CAA 0 issue example.net"),
	} {
		b.Run(name, func(b *testing.B) {
			msg := packed.Message(b, "www.example.org.", dns.TypeA, change)
			b.ReportAllocs()
			for b.Loop() {
				if _, v := Inspect(msg); v != Proper {
					b.Fatal(v)
				}
			}
		})
	}
}
