package acl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func TestSetup(t *testing.T) {
	const wrong = "plugin/acl: Testfile:2 - Error during parsing: "
	for _, tc := range []struct{ input, err string }{
		{"acl {\nblock type A net 192.168.0.0/16\n}", ""},
		{"acl {\nblock type TXT ANY CNAME net 192.168.3.0/24\n}", ""},
		{"acl {\nallow net 192.0.2.1 2001:db8::1\n}", ""},
		{"acl {\nblock net 2001:0db8:85a3:0000:0000:8a2e:0370:7334\n}", ""},
		{"acl {\nblock net 2001:db8:85a3::8a2e:370:7334/64\n}", ""},
		{"acl {\nblock net 192.0.2.1/24 *\n}", ""},
		{"acl {\nfilter\nsoa 86400\nasked\n}", ""},

		{"acl {\nhide\n}", wrong + `unexpected token "hide"; expect 'allow', 'block', 'filter' or 'drop'`},
		{"acl {\nblock A net 192.168.0.0/16\n}", wrong + `unexpected token "A"; expect 'type | net'`},
		{"acl {\nblock typ A\n}", wrong + `unexpected token "typ"; expect 'type | net'`},
		{"acl {\nblock type net 192.168.0.0/16\n}", wrong + `no token specified in "type" section`},
		{"acl {\nblock net\n}", wrong + `no token specified in "net" section`},
		{"acl {\nblock net 192.0.2.1 TYPE\n}", wrong + `no token specified in "type" section`},
		{"acl {\nblock type FOO\n}", wrong + `unexpected token "FOO"; expect legal QTYPE`},
		{"acl {\nblock type a\n}", wrong + `unexpected token "a"; expect legal QTYPE`},
		{"acl {\nblock net 1.2.3\n}", wrong + `illegal CIDR notation "1.2.3/32"`},
		{"acl {\nblock net 1.2.3/8\n}", wrong + `illegal CIDR notation "1.2.3/8"`},
		{"acl {\nblock net 192.168.0.0/33\n}", wrong + `illegal CIDR notation "192.168.0.0/33"`},
		{"acl {\nblock net 2001::85a3::8a2e:370:7334\n}", wrong + `illegal CIDR notation "2001::85a3::8a2e:370:7334/128"`},
		{"acl {\nsoa 0\n}", wrong + "soa must be between 1 and 86400: 0"},
		{"acl {\nasked yes\n}", "Wrong argument count"},
		{"acl a..b {\nblock\n}", `invalid zone "a..b"`},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
	}
}

func TestZones(t *testing.T) {
	many := ""
	for i := range 20 {
		many += fmt.Sprintf(" z%d.example.org", i)
	}
	for _, zones := range []string{" example.net", many + " example.net"} {
		c := caddy.NewTestController("dns", "acl {\nblock\n}\nacl"+zones+" sub.example.net {\nblock\n}")
		c.ServerBlockKeys = []string{"Example.org:53", "192.0.2.0/24"}
		if err := setup(c); err != nil {
			t.Fatal(err)
		}
		a := dnsserver.GetConfig(c).Plugin[0](nil).(ACL)
		for name, want := range map[string]string{
			"www.example.org.":        "example.org.",
			"1.2.0.192.in-addr.arpa.": "2.0.192.in-addr.arpa.",
			"example.net.":            "example.net.",
			"a.sub.example.net.":      "sub.example.net.",
			"example.com.":            "",
		} {
			q, _ := parsed(t, new(dns.Msg).SetQuestion(name, dns.TypeA), "192.0.2.1")
			v, got := decide(a.Rules, q, asked{}), ""
			if v.zone != nil {
				got = v.zone.text
			}
			if got != want {
				t.Errorf("%s: decided by %q, want %q", name, got, want)
			}
		}
		ids := map[int]bool{}
		for _, r := range a.Rules {
			for _, z := range r.zones {
				ids[z.id] = true
			}
		}
		if len(ids) != a.counts.zones || len(ids) < 4 {
			t.Errorf("ids %v of %d zones", ids, a.counts.zones)
		}
	}
}

// A policy is read, or there is an error; what is read can be asked.
func FuzzParsePolicy(f *testing.F) {
	for _, line := range []string{"allow", "block type A net 192.0.2.0/24", "DROP net * type *", "filter net 2001:db8::/32 ::1 192.0.2.1",
		"block type", "block net type A", "hide", "block net 1.2.3", "allow net fe80::1%eth0"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Fields(line)
		if len(words) == 0 {
			return
		}
		p, err := parsePolicy(words[0], words[1:])
		if err != nil {
			return
		}
		if p.action < allow || p.action > drop {
			t.Fatalf("%q: action %d", line, p.action)
		}
		for i, s := range p.sources.spans {
			if s.from.Compare(s.to) > 0 || s.from.BitLen() != s.to.BitLen() || i > 0 && p.sources.spans[i-1].to.Compare(s.from) >= 0 {
				t.Fatalf("%q: %v", line, p.sources.spans)
			}
			if !p.sources.contain(s.from) || !p.sources.contain(s.to) {
				t.Fatalf("%q does not hold its own bounds", line)
			}
		}
		if p.sources.all != (len(p.sources.spans) == 0) {
			t.Fatalf("%q: all or nothing", line)
		}
	})
}
