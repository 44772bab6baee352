package zone

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// build makes a zone of records in presentation form.
func build(t testing.TB, origin, text string) *Zone {
	t.Helper()
	b := NewBuilder(wire.MustName(origin), func(format string, args ...any) { t.Logf(format, args...) })
	zp := dns.NewZoneParser(strings.NewReader("$TTL 300\n"+text), origin, "db")
	for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
		if err := add(b, rr); err != nil {
			t.Fatal(err)
		}
	}
	if err := zp.Err(); err != nil {
		t.Fatal(err)
	}
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func add(b *Builder, rr dns.RR) error {
	buf := make([]byte, dns.Len(rr)+16)
	n, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		return err
	}
	owner := wire.NameLen(buf)
	return b.Add(buf[:owner], rr.Header().Rrtype, rr.Header().Ttl, buf[owner+10:n])
}

// A CNAME record beside other data goes before it (RFC 1034 §4.3.2 step 3a), but not at an apex before what makes that.
func TestCNAMEBesideOthers(t *testing.T) {
	z := build(t, "example.org.", apex+"@ CNAME www\nboth CNAME www\nboth A 192.0.2.9\nboth TXT x\nwww A 192.0.2.1\n*.star CNAME www\n*.star A 192.0.2.8\n")
	const alias = ". 300 IN CNAME www.example.org.\n"
	for _, tc := range []struct{ name, typ, want string }{
		{"both.example.org.", "A", "an both.example.org" + alias + "an www.example.org. 300 IN A 192.0.2.1\n"},
		{"both.example.org.", "TXT", "an both.example.org" + alias},
		{"both.example.org.", "CNAME", "an both.example.org" + alias},
		{"x.star.example.org.", "A", "an www.example.org. 300 IN A 192.0.2.1\nan x.star.example.org" + alias},
		{"example.org.", "A", "an example.org" + alias + "an www.example.org. 300 IN A 192.0.2.1\n"},
		{"example.org.", "SOA", "an example.org. 300 IN SOA ns1.example.org. hostmaster.example.org. 7 7200 3600 1209600 60\n"},
		{"example.org.", "NS", "an example.org. 300 IN NS ns.example.net.\nan example.org. 300 IN NS ns1.example.org.\n"},
	} {
		_, got := answer(t, z, tc.name, tc.typ, false)
		if !strings.HasPrefix(got, "NOERROR aa\n"+tc.want) || strings.Count(got, "\nan ") != strings.Count("\n"+tc.want, "\nan ") {
			t.Errorf("%s %s:\n%swant\n%s", tc.name, tc.typ, got, tc.want)
		}
	}
}

const apex = "@ SOA ns1 hostmaster 7 7200 3600 1209600 60\n@ NS ns1\n@ NS ns.example.net.\nns1 A 192.0.2.1\nns1 AAAA 2001:db8::1\n"

// answer asks, with nobody else to ask, and writes the reply down: rcode and AA, then a line for each record.
func answer(t testing.TB, z *Zone, name, typ string, do bool) (Result, string) {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, dns.StringToType[typ])
	m.SetEdns0(4096, do)
	p, _ := m.Pack()
	var q wire.Query
	if !q.Parse(p) {
		t.Fatalf("%s %s: not eligible", name, typ)
	}
	var w wire.Reply
	w.Reset(make([]byte, 0, 4096))
	var a Answerer
	r := a.Answer(z, &w, &q)
	if r == External {
		if !wire.Below(a.Target, z.Origin()) {
			return r, "target " + wire.Text(a.Target) + "\n"
		}
		r = a.Alone() // what the zone itself says
	}
	reply := new(dns.Msg)
	if err := reply.Unpack(w.Finish(&q, 1232)); err != nil {
		t.Fatalf("%s %s: %v", name, typ, err)
	}
	if reply.Question[0].Name != name {
		t.Errorf("%s %s: question %v", name, typ, reply.Question)
	}
	reply.Extra = reply.Extra[:len(reply.Extra)-1]
	reply.Compress = false
	if w.PlainLen() != reply.Len() {
		t.Errorf("%s %s: plain length %d, want %d", name, typ, w.PlainLen(), reply.Len())
	}
	out := dns.RcodeToString[reply.Rcode]
	if reply.Authoritative {
		out += " aa"
	}
	out += "\n"
	seen := map[string]bool{}
	for section, rrs := range map[string][]dns.RR{"an": reply.Answer, "ns": reply.Ns, "ar": reply.Extra} {
		for _, rr := range rrs {
			line := section + " " + strings.Join(strings.Fields(rr.String()), " ")
			if seen[line] {
				t.Errorf("%s %s: twice: %s", name, typ, line)
			}
			seen[line] = true
		}
	}
	var lines []string
	for l := range seen {
		lines = append(lines, l)
	}
	sort.Strings(lines)
	return r, out + strings.Join(lines, "\n") + "\n"
}

func TestAnswer(t *testing.T) {
	z := build(t, "example.org.", apex+`
www CNAME web
web A 192.0.2.20
web A 192.0.2.21
web A 192.0.2.20
mx MX 10 ns1
mx MX 20 mail.example.net.
_x._tcp SRV 1 2 3 web
svc HTTPS 1 web
a.b.c TXT "deep"
*.wild TXT "any"
*.wild MX 5 ns1
host.wild A 192.0.2.9
x.ent.wild A 192.0.2.8
*.cn CNAME web
star.*.lit TXT "below a star"
sub NS ns.sub
sub NS ns1
sub DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000
ns.sub A 192.0.2.30
deep.sub NS elsewhere.example.net.
old DNAME new
www.new A 192.0.2.40
hidden.old A 192.0.2.66
self DNAME self
ping CNAME pong
pong CNAME ping
out CNAME www.example.net.
tosub CNAME www.sub
toold CNAME www.old
nowhere CNAME missing
end CNAME web
`)
	soa := "ns example.org. 60 IN SOA ns1.example.org. hostmaster.example.org. 7 7200 3600 1209600 60\n"
	ns := "ns example.org. 300 IN NS ns.example.net.\nns example.org. 300 IN NS ns1.example.org.\n"
	glue := "ar ns.sub.example.org. 300 IN A 192.0.2.30\nar ns1.example.org. 300 IN A 192.0.2.1\nar ns1.example.org. 300 IN AAAA 2001:db8::1\n"
	sub := "ns sub.example.org. 300 IN NS ns.sub.example.org.\nns sub.example.org. 300 IN NS ns1.example.org.\n"
	for _, tc := range []struct {
		name, typ string
		do        bool
		result    Result
		want      string
	}{
		{"web.example.org.", "A", false, Hit, "NOERROR aa\nan web.example.org. 300 IN A 192.0.2.20\nan web.example.org. 300 IN A 192.0.2.21\n" + ns},
		{"www.example.org.", "A", false, Hit, "NOERROR aa\nan web.example.org. 300 IN A 192.0.2.20\nan web.example.org. 300 IN A 192.0.2.21\nan www.example.org. 300 IN CNAME web.example.org.\n" + ns},
		{"www.example.org.", "CNAME", false, Hit, "NOERROR aa\nan www.example.org. 300 IN CNAME web.example.org.\n" + ns},
		{"www.example.org.", "AAAA", false, NoData, "NOERROR aa\nan www.example.org. 300 IN CNAME web.example.org.\n" + soa},
		{"nowhere.example.org.", "A", false, NXDomain, "NXDOMAIN aa\nan nowhere.example.org. 300 IN CNAME missing.example.org.\n" + soa},
		{"example.org.", "NS", false, Hit, "NOERROR aa\nan example.org. 300 IN NS ns.example.net.\nan example.org. 300 IN NS ns1.example.org.\nar ns1.example.org. 300 IN A 192.0.2.1\nar ns1.example.org. 300 IN AAAA 2001:db8::1\n"},
		{"example.org.", "SOA", false, Hit, "NOERROR aa\nan example.org. 300 IN SOA ns1.example.org. hostmaster.example.org. 7 7200 3600 1209600 60\n" + ns},
		{"mx.example.org.", "MX", false, Hit, "NOERROR aa\nan mx.example.org. 300 IN MX 10 ns1.example.org.\nan mx.example.org. 300 IN MX 20 mail.example.net.\nar ns1.example.org. 300 IN A 192.0.2.1\nar ns1.example.org. 300 IN AAAA 2001:db8::1\n" + ns},
		{"_x._tcp.example.org.", "SRV", false, Hit, "NOERROR aa\nan _x._tcp.example.org. 300 IN SRV 1 2 3 web.example.org.\nar web.example.org. 300 IN A 192.0.2.20\nar web.example.org. 300 IN A 192.0.2.21\n" + ns},
		{"svc.example.org.", "HTTPS", false, Hit, "NOERROR aa\nan svc.example.org. 300 IN HTTPS 1 web.example.org.\nar web.example.org. 300 IN A 192.0.2.20\nar web.example.org. 300 IN A 192.0.2.21\n" + ns},
		{"web.example.org.", "TXT", false, NoData, "NOERROR aa\n" + soa},
		{"nope.example.org.", "A", false, NXDomain, "NXDOMAIN aa\n" + soa},
		{"b.c.example.org.", "A", false, Empty, "NOERROR aa\n" + soa},
		{"x.b.c.example.org.", "A", false, NXDomain, "NXDOMAIN aa\n" + soa},
		// Wildcards (RFC 4592).
		{"x.y.wild.example.org.", "TXT", false, Hit, "NOERROR aa\nan x.y.wild.example.org. 300 IN TXT \"any\"\n" + ns},
		{"x.wild.example.org.", "A", false, NoData, "NOERROR aa\n" + soa},
		{"*.wild.example.org.", "TXT", false, Hit, "NOERROR aa\nan *.wild.example.org. 300 IN TXT \"any\"\n" + ns},
		{"x.wild.example.org.", "MX", false, Hit, "NOERROR aa\nan x.wild.example.org. 300 IN MX 5 ns1.example.org.\nar ns1.example.org. 300 IN A 192.0.2.1\nar ns1.example.org. 300 IN AAAA 2001:db8::1\n" + ns},
		{"x.host.wild.example.org.", "TXT", false, NXDomain, "NXDOMAIN aa\n" + soa},
		{"ent.wild.example.org.", "TXT", false, Empty, "NOERROR aa\n" + soa},
		{"y.ent.wild.example.org.", "TXT", false, NXDomain, "NXDOMAIN aa\n" + soa},
		{"any.lit.example.org.", "TXT", false, NoData, "NOERROR aa\n" + soa},
		{"z.cn.example.org.", "A", false, Hit, "NOERROR aa\nan web.example.org. 300 IN A 192.0.2.20\nan web.example.org. 300 IN A 192.0.2.21\nan z.cn.example.org. 300 IN CNAME web.example.org.\n" + ns},
		// Delegations.
		{"sub.example.org.", "A", false, Referral, "NOERROR\n" + glue + sub},
		{"www.sub.example.org.", "A", false, Referral, "NOERROR\n" + glue + sub},
		{"ns.sub.example.org.", "A", false, Referral, "NOERROR\n" + glue + sub},
		{"x.deep.sub.example.org.", "A", false, Referral, "NOERROR\n" + glue + sub},
		{"sub.example.org.", "NS", false, Referral, "NOERROR\n" + glue + sub},
		{"www.sub.example.org.", "A", true, Referral, "NOERROR\n" + glue + "ns sub.example.org. 300 IN DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\n" + sub},
		{"sub.example.org.", "DS", false, Hit, "NOERROR aa\nan sub.example.org. 300 IN DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\n" + ns},
		{"www.sub.example.org.", "DS", false, Referral, "NOERROR\n" + glue + sub},
		{"tosub.example.org.", "A", false, Referral, "NOERROR aa\nan tosub.example.org. 300 IN CNAME www.sub.example.org.\n" + glue + sub},
		// DNAME (RFC 6672).
		{"www.old.example.org.", "A", false, Hit, "NOERROR aa\nan old.example.org. 300 IN DNAME new.example.org.\nan www.new.example.org. 300 IN A 192.0.2.40\nan www.old.example.org. 300 IN CNAME www.new.example.org.\n" + ns},
		{"hidden.old.example.org.", "A", false, NXDomain, "NXDOMAIN aa\nan hidden.old.example.org. 300 IN CNAME hidden.new.example.org.\nan old.example.org. 300 IN DNAME new.example.org.\n" + soa},
		{"www.old.example.org.", "CNAME", false, Hit, "NOERROR aa\nan old.example.org. 300 IN DNAME new.example.org.\nan www.old.example.org. 300 IN CNAME www.new.example.org.\n" + ns},
		{"old.example.org.", "A", false, NoData, "NOERROR aa\n" + soa},
		{"toold.example.org.", "A", false, Hit, "NOERROR aa\nan old.example.org. 300 IN DNAME new.example.org.\nan toold.example.org. 300 IN CNAME www.old.example.org.\nan www.new.example.org. 300 IN A 192.0.2.40\nan www.old.example.org. 300 IN CNAME www.new.example.org.\n" + ns},
		{"x.self.example.org.", "A", false, Broken, "SERVFAIL aa\nan self.example.org. 300 IN DNAME self.example.org.\n"},
		{"ping.example.org.", "A", false, Hit, "NOERROR aa\nan ping.example.org. 300 IN CNAME pong.example.org.\nan pong.example.org. 300 IN CNAME ping.example.org.\n" + ns},
		{"out.example.org.", "A", false, External, "target www.example.net.\n"},
		{"WEB.Example.org.", "A", false, Hit, "NOERROR aa\nan web.example.org. 300 IN A 192.0.2.20\nan web.example.org. 300 IN A 192.0.2.21\n" + ns},
		{"WWW.SUB.example.org.", "A", false, Referral, "NOERROR\n" + glue + sub},
		{"NoPe.example.org.", "A", false, NXDomain, "NXDOMAIN aa\n" + soa},
	} {
		r, got := answer(t, z, tc.name, tc.typ, tc.do)
		if r != tc.result || got != sorted(tc.want) {
			t.Errorf("%s %s: result %d, want %d\n got %s\nwant %s", tc.name, tc.typ, r, tc.result, got, sorted(tc.want))
		}
	}
}

// sorted sorts the lines behind the first.
func sorted(s string) string {
	head, rest, _ := strings.Cut(s, "\n")
	if rest == "" {
		return s
	}
	lines := strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
	sort.Strings(lines)
	return head + "\n" + strings.Join(lines, "\n") + "\n"
}

func TestDNAMETooLong(t *testing.T) {
	label := strings.Repeat("a", 63)
	z := build(t, "example.org.", apex+"s DNAME "+label+"."+label+".long\n")
	if r, got := answer(t, z, label+"."+label+".s.example.org.", "A", false); r != TooLong || !strings.HasPrefix(got, "YXDOMAIN aa\nan s.example.org. ") {
		t.Errorf("result %d %s", r, got)
	}
}

func TestLongChain(t *testing.T) {
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "c%d CNAME c%d\n", i, i+1)
	}
	z := build(t, "example.org.", apex+text.String()+"c20 A 192.0.2.1\n")
	if r, got := answer(t, z, "c10.example.org.", "A", false); r != Hit || !strings.Contains(got, "192.0.2.1") {
		t.Errorf("ten aliases: %d %s", r, got)
	}
	if r, got := answer(t, z, "c0.example.org.", "A", false); r != Broken || !strings.HasPrefix(got, "SERVFAIL") {
		t.Errorf("twenty aliases: %d %s", r, got)
	}
}

func TestRootZone(t *testing.T) {
	z := build(t, ".", "@ SOA a.root. h.root. 1 2 3 4 5\n@ NS a.root.\na.root. A 192.0.2.1\norg. NS ns.org.\nns.org. A 192.0.2.2\n")
	if r, got := answer(t, z, "www.example.org.", "A", false); r != Referral || got != "NOERROR\nar ns.org. 300 IN A 192.0.2.2\nns org. 300 IN NS ns.org.\n" {
		t.Errorf("%d %s", r, got)
	}
	if r, got := answer(t, z, ".", "NS", false); r != Hit || got != "NOERROR aa\nan . 300 IN NS a.root.\nar a.root. 300 IN A 192.0.2.1\n" {
		t.Errorf("%d %s", r, got)
	}
	if r, got := answer(t, z, "com.", "A", false); r != NXDomain || got != "NXDOMAIN aa\nns . 5 IN SOA a.root. h.root. 1 2 3 4 5\n" {
		t.Errorf("%d %s", r, got)
	}
}

func TestBuild(t *testing.T) {
	var warnings []string
	b := NewBuilder(wire.MustName("Example.org"), func(f string, a ...any) { warnings = append(warnings, fmt.Sprintf(f, a...)) })
	for _, s := range []string{"example.org. 5 SOA a. b. 1 2 3 4 5", "example.org. 7 SOA a. b. 9 2 3 4 60", "x.example.org. 5 A 192.0.2.1", "X.example.org. 5 A 192.0.2.1",
		"www.example.com. 5 A 192.0.2.1", "notexample.org. 5 A 192.0.2.1", "c.example.org. 5 CNAME x.example.org.", "c.example.org. 5 A 192.0.2.1", "x.example.org. 5 SOA a. b. 1 2 3 4 5",
		"d.example.org. 5 DNAME example.com.", "d.example.org. 5 DNAME example.net."} {
		rr, err := dns.NewRR(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := add(b, rr); err != nil {
			t.Fatal(err)
		}
	}
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if z.Serial() != 9 || z.Records() != 6 || z.Names() != 4 || wire.Text(z.Origin()) != "example.org." {
		t.Errorf("serial %d, %d records, %d names", z.Serial(), z.Records(), z.Names())
	}
	if len(warnings) != 6 || !strings.Contains(warnings[3], "example.org. has several SOA records: the last one counts") ||
		!strings.Contains(warnings[4], "c.example.org. has a CNAME record and other data") ||
		!strings.Contains(warnings[5], "d.example.org. has 2 DNAME records, may have one") {
		t.Errorf("warnings %q", warnings)
	}
	if _, err := NewBuilder(wire.MustName("example.org"), t.Logf).Build(); err != ErrNoSOA {
		t.Errorf("without SOA: %v", err)
	}
	rr, _ := dns.NewRR("example.org. 5 NSEC3PARAM 1 0 0 -")
	if err := add(NewBuilder(wire.MustName("example.org"), t.Logf), rr); err == nil || !strings.Contains(err.Error(), "NSEC3 zone is not supported, dropping RR: example.org. for zone: example.org.") {
		t.Errorf("NSEC3PARAM: %v", err)
	}
}

func TestManyRecords(t *testing.T) {
	b := NewBuilder(wire.MustName("example.org"), t.Logf)
	soa, _ := dns.NewRR("example.org. 5 SOA a. b. 1 2 3 4 5")
	add(b, soa)
	const n = 60000
	for i := range n {
		name := wire.MustName(fmt.Sprintf("n%d.d%d.example.org", i, i%100))
		if err := b.Add(name, wire.TypeA, 5, []byte{10, byte(i >> 16), byte(i >> 8), byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if z.Names() != n+101 || z.Records() != n+1 {
		t.Errorf("%d names, %d records", z.Names(), z.Records())
	}
	for i := 0; i < n; i += 37 {
		m := z.Find(wire.MustName(fmt.Sprintf("n%d.d%d.example.org", i, i%100)))
		set := m.Node.Set(wire.TypeA)
		if m.Kind != Exists || set == nil || set.Len() != 1 {
			t.Fatalf("n%d: %v", i, m.Kind)
		}
	}
	if m := z.Find(wire.MustName("n1.d2.example.org")); m.Kind != Missing || wire.Text(m.Node.Name(z)) != "d2.example.org." {
		t.Errorf("missing name: %v", m.Kind)
	}
	if per := z.Size() / n; per > 120 {
		t.Errorf("%d octets a record", per)
	}
}

func TestAnswerDoesNotAllocate(t *testing.T) {
	z := build(t, "example.org.", apex+"www A 192.0.2.1\n*.w A 192.0.2.2\nmx MX 1 ns1\nsub NS ns.sub\nns.sub A 192.0.2.3\nc CNAME www\nd DNAME www\ngone CNAME missing\n")
	var q wire.Query
	var w wire.Reply
	var a Answerer
	buf := make([]byte, 4096)
	for _, tc := range []struct {
		name, typ string
		want      Result
	}{{"www.example.org.", "A", Hit}, {"x.w.example.org.", "A", Hit}, {"www.example.org.", "TXT", NoData}, {"nope.example.org.", "A", NXDomain}, {"x.sub.example.org.", "A", Referral},
		{"mx.example.org.", "MX", Hit}, {"c.example.org.", "A", Hit}, {"x.d.example.org.", "A", External}, {"gone.example.org.", "A", External}, {"WWW.Example.org.", "A", Hit}} {
		m := new(dns.Msg).SetQuestion(tc.name, dns.StringToType[tc.typ])
		p, _ := m.Pack()
		if n := testing.AllocsPerRun(50, func() {
			q.Parse(p)
			w.Reset(buf)
			if r := a.Answer(z, &w, &q); r != tc.want {
				t.Fatalf("%s: result %d", tc.name, r)
			}
			w.Finish(&q, 1232)
		}); n != 0 {
			t.Errorf("%s %s: %v allocations", tc.name, tc.typ, n)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	z := build(b, "example.org.", "@ SOA ns1 hostmaster 7 7200 3600 1209600 60\n@ NS ns1\n@ NS ns2\nns1 A 192.0.2.1\nwww A 192.0.2.1\n*.w A 192.0.2.2\nsub NS ns.sub\nns.sub A 192.0.2.3\nc CNAME www\n")
	var q wire.Query
	var w wire.Reply
	var a Answerer
	buf := make([]byte, 4096)
	for _, bc := range []struct{ what, name, typ string }{{"positive", "www.example.org.", "A"}, {"wildcard", "x.w.example.org.", "A"}, {"nodata", "www.example.org.", "TXT"}, {"nxdomain", "nope.example.org.", "A"},
		{"referral", "x.sub.example.org.", "A"}, {"cname", "c.example.org.", "A"}} {
		p, _ := new(dns.Msg).SetQuestion(bc.name, dns.StringToType[bc.typ]).Pack()
		b.Run(bc.what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q.Parse(p)
				w.Reset(buf)
				a.Answer(z, &w, &q)
				w.Finish(&q, 1232)
			}
		})
	}
}
