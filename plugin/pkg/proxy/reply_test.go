package proxy

import (
	"encoding/hex"
	"testing"

	"github.com/miekg/dns"
)

// packed is a message with a question for name, changed by the functions.
func packed(t testing.TB, name string, typ uint16, change ...func(*dns.Msg)) []byte {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, typ)
	m.Compress = true
	for _, f := range change {
		f(m)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func reply(m *dns.Msg) { m.Response = true }

func answer(rrs ...string) func(*dns.Msg) {
	return func(m *dns.Msg) {
		reply(m)
		for _, s := range rrs {
			rr, err := dns.NewRR(s)
			if err != nil {
				panic(err)
			}
			m.Answer = append(m.Answer, rr)
		}
	}
}

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
		b := packed(t, "www.example.org.", dns.TypeA, answer(rr))
		in, v := inspect(b)
		if v != proper || in.Answers != 1 || in.Rcode != 0 || in.TC {
			t.Errorf("%s: %v %+v", rr, v, in)
		}
		if _, ok := walk(b, in.qend); !ok {
			t.Errorf("%s takes the slow way", rr)
		}
	}
	for _, rr := range []string{
		"example.org. 300 IN HTTPS 1 . alpn=h2",
		"example.org. 300 IN NSEC a.example.org. A RRSIG NSEC",
		`example.org. 300 IN CAA 0 issue "ca.example.org"`,
		"example.org. 300 IN TYPE65280 \\# 3 abcdef",
	} {
		if in, v := inspect(packed(t, "www.example.org.", dns.TypeA, answer(rr))); v != proper || in.Answers != 1 {
			t.Errorf("%s: %v %+v", rr, v, in)
		}
	}
}

func TestInspectFacts(t *testing.T) {
	ede := func(m *dns.Msg) {
		reply(m)
		m.SetEdns0(1232, true)
		m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_EDE{InfoCode: 22, ExtraText: "no"}, &dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: "ab"})
	}
	for name, tc := range map[string]struct {
		b    []byte
		want Facts
	}{
		"NXDOMAIN":      {packed(t, "a.example.org.", 1, reply, func(m *dns.Msg) { m.Rcode = dns.RcodeNameError }), Facts{Rcode: 3}},
		"TC":            {packed(t, "a.example.org.", 1, reply, func(m *dns.Msg) { m.Truncated = true }), Facts{TC: true}},
		"BADCOOKIE":     {packed(t, "a.example.org.", 1, ede, func(m *dns.Msg) { m.Rcode = dns.RcodeBadCookie }), Facts{Rcode: 23}},
		"root question": {packed(t, ".", dns.TypeNS, answer(". 1 IN NS a.")), Facts{Answers: 1}},
	} {
		in, v := inspect(tc.b)
		if opt := findOPT(tc.b); int(in.opt) != opt {
			t.Errorf("%s: the OPT record is at %d, said to be at %d", name, opt, in.opt)
		}
		if in.opt = 0; v != proper || in.Facts != tc.want {
			t.Errorf("%s: %v %+v, want %+v", name, v, in.Facts, tc.want)
		}
	}
}

func TestInspectImproper(t *testing.T) {
	good := packed(t, "www.example.org.", dns.TypeA, answer("www.example.org. 300 IN A 192.0.2.1", "www.example.org. 300 IN A 192.0.2.2"))
	change := func(at int, to ...byte) []byte {
		b := append([]byte(nil), good...)
		copy(b[at:], to)
		return b
	}
	for name, tc := range map[string]struct {
		b    []byte
		want verdict
	}{
		"nothing":               {nil, tooShort},
		"a header":              {good[:12], tooShort},
		"half a question":       {good[:20], tooShort},
		"a question cut":        {good[:31], tooShort},
		"no question":           {change(4, 0, 0), tooShort},
		"two questions":         {change(4, 0, 2), tooShort},
		"a query":               {change(2, 1, 0), notReply},
		"a record cut":          {good[:len(good)-3], cutShort},
		"all records cut":       {good[:33], cutShort},
		"the last record cut":   {good[:49], cutShort},
		"one more counted":      {change(7, 3), cutShort},
		"an authority counted":  {change(9, 1), cutShort},
		"an additional counted": {change(11, 1), proper},
		"an owner cut":          {good[:len(good)-15], cutShort},
		"a pointer to itself":   {change(33, 0xC0, 33), malformed},
		"an A of 3 octets":      {change(43, 0, 3), cutShort},
		"a reserved label type": {change(33, 0x80), malformed},
	} {
		if _, v := inspect(tc.b); v != tc.want {
			t.Errorf("%s: got %v, want %v\n%s", name, v, tc.want, hex.Dump(tc.b))
		}
	}
}

func TestAnswers(t *testing.T) {
	query := packed(t, "WWW.example.org.", dns.TypeA)
	for name, tc := range map[string]struct {
		b    []byte
		want bool
	}{
		"the same":        {packed(t, "WWW.example.org.", dns.TypeA, reply), true},
		"other case":      {packed(t, "www.EXAMPLE.org.", dns.TypeA, reply), true},
		"another name":    {packed(t, "www.example.net.", dns.TypeA, reply), false},
		"a longer name":   {packed(t, "a.WWW.example.org.", dns.TypeA, reply), false},
		"a shorter name":  {packed(t, "example.org.", dns.TypeA, reply), false},
		"another type":    {packed(t, "www.example.org.", dns.TypeAAAA, reply), false},
		"another class":   {packed(t, "www.example.org.", dns.TypeA, reply, func(m *dns.Msg) { m.Question[0].Qclass = 3 }), false},
		"no letters fold": {packed(t, "WWW.example\\007org.", dns.TypeA, reply), false},
	} {
		in, v := inspect(tc.b)
		if v != proper {
			t.Fatalf("%s: %v", name, v)
		}
		if got := in.answers(tc.b, query); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestEmpty(t *testing.T) {
	b := packed(t, "www.example.org.", dns.TypeA, answer("www.example.org. 300 IN A 192.0.2.1"), func(m *dns.Msg) {
		m.Rcode, m.RecursionAvailable = dns.RcodeNameError, true
	})
	b = b[:len(b)-2]
	in, v := inspect(b)
	if v != cutShort {
		t.Fatal(v)
	}
	var m dns.Msg
	if err := m.Unpack(in.empty(b)); err != nil {
		t.Fatal(err)
	}
	if !m.Truncated || !in.TC || m.Rcode != dns.RcodeNameError || !m.RecursionAvailable || len(m.Answer) != 0 || len(m.Question) != 1 {
		t.Error(m.String())
	}
}

// Whatever comes, what is accepted for a query unpacks, answers the question, and is what the facts say.
func FuzzReply(f *testing.F) {
	query := packed(f, "www.example.org.", dns.TypeA)
	f.Add(packed(f, "www.example.org.", dns.TypeA, answer("www.example.org. 300 IN A 192.0.2.1")))
	f.Add(packed(f, "www.example.org.", dns.TypeA, answer("www.example.org. 300 IN CNAME a.example.org.", "a.example.org. 1 IN RRSIG A 13 2 300 20300101000000 20200101000000 1234 example.org. AAAA")))
	f.Add(packed(f, "WWW.example.ORG.", dns.TypeA, answer(`www.example.org. 300 IN TXT "a" "b"`, "x.example.org. 1 IN SOA a. b. 1 2 3 4 5", "example.org. 1 IN SRV 1 2 3 a.b."), func(m *dns.Msg) {
		m.SetEdns0(1232, true)
		m.Rcode = dns.RcodeBadCookie
	}))
	f.Add(packed(f, "www.example.org.", dns.TypeA, answer("example.org. 300 IN HTTPS 1 . alpn=h2", "example.org. 1 IN DS 1 2 3 abcd")))
	f.Add(packed(f, "www.example.org.", dns.TypeA, answer("example.org. 1 IN HTTPS 1 a. alpn=h2,h3 port=8443 ipv4hint=192.0.2.1 ipv6hint=2001:db8::1 key700=x",
		"a. 1 IN NSEC b.example.org. A RRSIG TYPE700", "a. 1 IN NSEC3 1 0 2 abcd 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR A RRSIG")))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, v := inspect(b)
		if v > cutShort || !in.answers(b, query) {
			return
		}
		if v == cutShort {
			b = in.empty(append([]byte(nil), b...))
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
		if in.Rcode != m.Rcode || in.TC != m.Truncated || in.Answers != len(m.Answer) || in.id != m.Id {
			t.Fatalf("facts %+v, message\n%v", in, &m)
		}
	})
}

func BenchmarkInspect(b *testing.B) {
	for name, change := range map[string]func(*dns.Msg){
		"ordinary": answer("www.example.org. 300 IN CNAME web.example.org.", "web.example.org. 300 IN A 192.0.2.1", "web.example.org. 300 IN A 192.0.2.2"),
		"service":  answer("www.example.org. 300 IN HTTPS 1 . alpn=h2"),
		"slow":     answer("www.example.org. 300 IN CAA 0 issue example.net"),
	} {
		b.Run(name, func(b *testing.B) {
			msg := packed(b, "www.example.org.", dns.TypeA, change)
			b.ReportAllocs()
			for b.Loop() {
				if _, v := inspect(msg); v != proper {
					b.Fatal(v)
				}
			}
		})
	}
}

func TestRcodeLabel(t *testing.T) {
	for code, want := range map[int]string{0: "NOERROR", 3: "NXDOMAIN", 15: "15", 23: "BADCOOKIE", 4000: "4000"} {
		if got := rcodeLabel(code); got != want {
			t.Errorf("%d: %s", code, got)
		}
	}
}
