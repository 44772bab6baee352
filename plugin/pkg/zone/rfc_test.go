package zone

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// asksFor is one question and what is said: rcode, AA and the answer's records, then owners and types of authority and
// additional records, sorted, with commas between them.
type asksFor struct{ name, typ, answer, ns, ar string }

// check asks a zone and compares. The origin is left out of names: @ is the origin itself.
func check(t *testing.T, z *Zone, cases []asksFor) {
	t.Helper()
	origin := wire.Text(z.Origin())
	full := func(name string) string {
		switch {
		case name == "@":
			return origin
		case strings.HasSuffix(name, "."):
			return name
		}
		return name + "." + origin
	}
	short := func(s string) string {
		s = strings.ReplaceAll(s, "."+strings.ToLower(origin), "")
		if s == strings.ToLower(origin) {
			return "@"
		}
		return s
	}
	for _, tc := range cases {
		got := tell(t, z, dns.Question{Name: full(tc.name), Qtype: dns.StringToType[tc.typ], Qclass: dns.ClassINET})
		var parts [3][]string
		for _, l := range strings.Split(strings.TrimSpace(got.String()), "\n")[1:] {
			f := strings.Fields(l)
			owner, typ := short(f[1]), strings.ToUpper(f[4])
			switch f[0] {
			case "an":
				parts[0] = append(parts[0], strings.TrimSpace(owner+" "+typ+" "+short(strings.Join(f[5:], " "))))
			case "ns":
				parts[1] = append(parts[1], owner+" "+typ)
			default:
				parts[2] = append(parts[2], owner+" "+typ)
			}
		}
		head := dns.RcodeToString[got.rcode]
		if got.aa {
			head += " aa"
		}
		answer := strings.Join(append([]string{head}, parts[0]...), ", ")
		if ns, ar := strings.Join(parts[1], ", "), strings.Join(parts[2], ", "); answer != tc.answer || ns != tc.ns || ar != tc.ar {
			t.Errorf("%s %s:\n got %s | %s | %s\nwant %s | %s | %s", tc.name, tc.typ, answer, ns, ar, tc.answer, tc.ns, tc.ar)
		}
	}
}

// The zone and the questions of RFC 4592 §2.2.1: which names a wildcard stands for, and which it does not because they,
// or names between, exist.
func TestWildcardsOfRFC4592(t *testing.T) {
	z := build(t, "example.", `@ SOA ns.example.com. h.example.com. 1 2 3 4 5
@ NS ns.example.com.
@ NS ns.example.net.
*.example. TXT "this is a wildcard"
*.example. MX 10 host1
sub.*.example. TXT "this is not a wildcard"
host1 A 192.0.2.1
_ssh._tcp.host1 SRV 0 0 22 host1
_ssh._tcp.host2 SRV 0 0 22 host2
subdel NS ns.example.com.
subdel NS ns.example.net.
`)
	const ns, soa = "@ NS, @ NS", "@ SOA"
	check(t, z, []asksFor{
		// Synthesized.
		{"host3", "MX", "NOERROR aa, host3 MX 10 host1", ns, "host1 A"},
		{"host3", "A", "NOERROR aa", soa, ""},
		{"foo.bar", "TXT", `NOERROR aa, foo.bar TXT "this is a wildcard"`, ns, ""},
		// Not, because the name exists.
		{"host1", "MX", "NOERROR aa", soa, ""},
		{"sub.*", "MX", "NOERROR aa", soa, ""},
		// Not, because an empty non-terminal is the closest encloser.
		{"_telnet._tcp.host1", "SRV", "NXDOMAIN aa", soa, ""},
		{"host.subdel", "A", "NOERROR", "subdel NS, subdel NS", ""},
		{"ghost.*", "MX", "NXDOMAIN aa", soa, ""},
		// An asterisk as a question's label is an ordinary name (§2.3).
		{"*", "TXT", `NOERROR aa, * TXT "this is a wildcard"`, ns, ""},
		{"*", "A", "NOERROR aa", soa, ""},
		{"*.host3", "TXT", `NOERROR aa, *.host3 TXT "this is a wildcard"`, ns, ""},
		{"_tcp.host2", "SRV", "NOERROR aa", soa, ""},
		{"host2", "MX", "NOERROR aa", soa, ""},
	})
}

// A DNAME that an answer was made with, and that is asked for where it leads, stands in the answer once (RFC 2181 §5).
func TestDNAMEOnce(t *testing.T) {
	z := build(t, "example.org.", apex+"d DNAME @\nback CNAME d\n")
	m := tell(t, z, dns.Question{Name: "back.d.example.org.", Qtype: dns.TypeDNAME, Qclass: dns.ClassINET})
	if len(m.answer) != 3 { // tell fails the test for what stands there twice
		t.Errorf("%s", m)
	}
}

// DNAME (RFC 6672): it stands for all below its owner and never for the owner itself (§2.3); what it makes may lead on,
// or back; names below it in the zone do not count (§2.4).
func TestSubstitutionOfRFC6672(t *testing.T) {
	z := build(t, "example.org.", apex+`frobozz DNAME target
host.target A 192.0.2.1
frobozz TXT beside
x.frobozz A 192.0.2.9
one DNAME two
two DNAME three
a.three A 192.0.2.3
www CNAME a.one
loop DNAME pool
pool DNAME loop
deep DNAME deep2.deep3
*.deep2.deep3 A 192.0.2.4
away DNAME example.net.
tocut DNAME sub
sub NS ns.sub
ns.sub A 192.0.2.5
up DNAME @
`)
	const ns, soa = "@ NS, @ NS", "@ SOA"
	d := "frobozz DNAME target"
	check(t, z, []asksFor{
		{"frobozz", "A", "NOERROR aa", soa, ""},
		{"frobozz", "DNAME", "NOERROR aa, " + d, ns, ""},
		{"frobozz", "TXT", `NOERROR aa, frobozz TXT "beside"`, ns, ""},
		{"host.frobozz", "A", "NOERROR aa, " + d + ", host.frobozz CNAME host.target, host.target A 192.0.2.1", ns, ""},
		{"x.frobozz", "A", "NXDOMAIN aa, " + d + ", x.frobozz CNAME x.target", soa, ""},
		{"y.x.frobozz", "CNAME", "NOERROR aa, " + d + ", y.x.frobozz CNAME y.x.target", ns, ""},
		{"www", "A", "NOERROR aa, a.one CNAME a.two, a.three A 192.0.2.3, a.two CNAME a.three, one DNAME two, two DNAME three, www CNAME a.one", ns, ""},
		{"a.loop", "A", "NOERROR aa, a.loop CNAME a.pool, a.pool CNAME a.loop, loop DNAME pool, pool DNAME loop", ns, ""},
		{"b.deep", "A", "NOERROR aa, b.deep CNAME b.deep2.deep3, b.deep2.deep3 A 192.0.2.4, deep DNAME deep2.deep3", ns, ""},
		{"www.away", "A", "NOERROR aa, away DNAME example.net., www.away CNAME www.example.net.", ns, ""},
		{"www.tocut", "A", "NOERROR aa, tocut DNAME sub, www.tocut CNAME www.sub", "sub NS", "ns.sub A"},
		{"www.up", "A", "NOERROR aa, a.one CNAME a.two, a.three A 192.0.2.3, a.two CNAME a.three, one DNAME two, two DNAME three, up DNAME @, www CNAME a.one, www.up CNAME www", ns, ""},
	})
}

// A referral has the addresses that the zone has of the servers: those in the domain, without which nobody gets there,
// and those elsewhere in the zone, also below other cuts (RFC 1034 §4.3.2 step 3b, RFC 9471 §2). Nothing below a cut is
// answered from; at a cut only DS records are (RFC 4035 §3.1.4.1).
func TestReferrals(t *testing.T) {
	z := build(t, "example.org.", apex+`sub NS ns.sub
sub NS ns.other
sub NS ns1
sub NS ns.example.net.
sub NS alias
sub NS x.wild
ns.sub A 192.0.2.10
ns.sub AAAA 2001:db8::10
other NS ns.other
other DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000
ns.other A 192.0.2.20
alias CNAME ns1
*.wild A 192.0.2.30
inner.sub NS ns.inner.sub
ns.inner.sub A 192.0.2.40
sub TXT "belongs to the child"
mx MX 1 ns.sub
mx MX 2 alias
`)
	const glue = "ns.other A, ns.sub A, ns.sub AAAA, ns1 A, ns1 AAAA"
	const sub, soa = "sub NS, sub NS, sub NS, sub NS, sub NS, sub NS", "@ SOA"
	check(t, z, []asksFor{
		{"sub", "A", "NOERROR", sub, glue},
		{"sub", "TXT", "NOERROR", sub, glue},
		{"sub", "NS", "NOERROR", sub, glue},
		{"sub", "ANY", "NOERROR", sub, glue},
		{"sub", "SOA", "NOERROR", sub, glue},
		{"ns.sub", "A", "NOERROR", sub, glue},
		{"a.b.c.sub", "DS", "NOERROR", sub, glue},
		{"ns.inner.sub", "A", "NOERROR", sub, glue},
		{"inner.sub", "DS", "NOERROR", sub, glue},
		{"sub", "DS", "NOERROR aa", soa, ""},
		{"other", "DS", "NOERROR aa, other DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000", "@ NS, @ NS", ""},
		{"x.other", "A", "NOERROR", "other NS", "ns.other A"},
		{"other", "A", "NOERROR", "other NS", "ns.other A"},
		// Addresses of exchanges: glue counts, aliases and wildcards do not (RFC 1034 §4.3.2 step 6).
		{"mx", "MX", "NOERROR aa, mx MX 1 ns.sub, mx MX 2 alias", "@ NS, @ NS", "ns.sub A, ns.sub AAAA"},
	})
}

// A cut within another one, a DNAME below a cut and a cut below a DNAME are occluded: what is nearest the apex counts,
// whatever stands below it (RFC 1034 §4.3.2, RFC 6672 §2.4).
func TestNearestToTheApexCounts(t *testing.T) {
	z := build(t, "example.org.", apex+`cut NS ns.cut
ns.cut A 192.0.2.1
d.cut DNAME elsewhere
*.cut TXT "occluded"
dname DNAME elsewhere
cut.dname NS ns1
*.dname TXT "occluded"
a.b.dname A 192.0.2.2
both NS ns1
both DNAME elsewhere
x.elsewhere TXT "there"
`)
	const ns = "@ NS, @ NS"
	check(t, z, []asksFor{
		{"x.d.cut", "TXT", "NOERROR", "cut NS", "ns.cut A"},
		{"d.cut", "DNAME", "NOERROR", "cut NS", "ns.cut A"},
		{"x.cut", "TXT", "NOERROR", "cut NS", "ns.cut A"},
		{"*.cut", "TXT", "NOERROR", "cut NS", "ns.cut A"},
		{"x.cut.dname", "A", "NXDOMAIN aa, dname DNAME elsewhere, x.cut.dname CNAME x.cut.elsewhere", "@ SOA", ""},
		{"cut.dname", "DS", "NXDOMAIN aa, cut.dname CNAME cut.elsewhere, dname DNAME elsewhere", "@ SOA", ""},
		{"x.dname", "TXT", `NOERROR aa, dname DNAME elsewhere, x.dname CNAME x.elsewhere, x.elsewhere TXT "there"`, ns, ""},
		{"b.dname", "A", "NXDOMAIN aa, b.dname CNAME b.elsewhere, dname DNAME elsewhere", "@ SOA", ""},
		{"x.both", "TXT", "NOERROR", "both NS", "ns1 A, ns1 AAAA"},
		{"both", "DNAME", "NOERROR", "both NS", "ns1 A, ns1 AAAA"},
	})
}

// At the wildcard's own labels: a name is made long as 255 octets, below the apex as far as names go (RFC 1035 §2.3.4);
// a denial whose wildcard would be longer than a name needs no proof of it.
func TestLongestNames(t *testing.T) {
	label := strings.Repeat("a", 63)
	base := label + "." + label + "." + label + "." // 192 octets; with example.org. 205
	z := build(t, "example.org.", signedZone+"*.long TXT any\n")
	for n := range 60 {
		name := strings.Repeat("b", max(1, n)) + "." + base
		packed, err := wire.AppendName(nil, name+"example.org.")
		if err != nil {
			continue
		}
		if got := brief(t, z, name+"example.org.", "A"); !strings.HasPrefix(got, "NXDOMAIN aa ns: @/SOA") || !strings.Contains(got, "NSEC") {
			t.Fatalf("%d octets: %s", len(packed), got)
		}
		below := strings.Repeat("b", max(1, n-5)) + "." + base + "long.example.org."
		if packed, err := wire.AppendName(nil, below); err == nil && len(packed) <= wire.MaxName {
			if got := tell(t, z, dns.Question{Name: below, Qtype: dns.TypeTXT, Qclass: dns.ClassINET}); len(got.answer) != 1 || got.rcode != 0 {
				t.Fatalf("%d octets: %s", len(packed), got)
			}
		}
	}
}
