// Package lanes asks plugins in both lanes, with nothing of the server around them. Nothing else runs in its process: what
// it logs and counts is theirs. Start at TestLanesOfEach.
package lanes

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/core/plugin"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
)

// chainOf makes the chain of directives, the first of which is asked first. What they do at the start is not done.
func chainOf(t *testing.T, directives ...[2]string) test.Handler {
	t.Helper()
	var next plugin.Handler
	for i := len(directives) - 1; i >= 0; i-- {
		c := caddy.NewTestController("dns", directives[i][1])
		c.ServerBlockKeys = []string{"."}
		setup, err := caddy.DirectiveAction("dns", directives[i][0])
		if err != nil {
			t.Fatal(err)
		}
		if err := setup(c); err != nil {
			t.Fatal(err)
		}
		for _, p := range dnsserver.GetConfig(c).Plugin {
			next = p(next)
		}
	}
	return next
}

// Plugins that decide by themselves do the same in both lanes, with nothing of the server around them.
func TestLanesOfEach(t *testing.T) {
	dir := t.TempDir()
	zone := filepath.Join(dir, "db")
	if err := os.WriteFile(zone, []byte(zoneForLanes), 0o644); err != nil {
		t.Fatal(err)
	}
	queries := questions()
	source := [2]string{"file", "file " + zone + " example.org"}
	for name, directives := range map[string][][2]string{
		"file":        {source},
		"any":         {{"any", "any"}, source},
		"minimal":     {{"minimal", "minimal"}, source},
		"loadbalance": {{"loadbalance", "loadbalance"}, source},
		"nsid":        {{"nsid", "nsid me"}, source},
		"acl":         {{"acl", "acl {\nblock type TXT net 10.0.0.0/8\nfilter type MX net *\nallow\n}"}, source},
		"header":      {{"header", "header {\nresponse set ra\nquery clear rd\n}"}, source},
		"rewrite":     {{"rewrite", "rewrite name suffix .example.net .example.org answer auto"}, source},
		"bufsize":     {{"bufsize", "bufsize 700"}, source},
		"local":       {{"local", "local"}, source},
		"dns64":       {{"dns64", "dns64 {\nallow_ipv4\n}"}, source},
		"hosts":       {{"hosts", "hosts " + zone + ".none {\n192.0.2.7 www.example.org x.example.net\nfallthrough\n}"}, source},
		"whoami":      {{"whoami", "whoami"}},
		"errors":      {{"errors", "errors"}, {"whoami", "whoami"}},
		"chaos":       {{"chaos", "chaos v1 me"}, {"whoami", "whoami"}},
		"cookie":      {{"cookie", "cookie"}, {"whoami", "whoami"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.Lanes(t, func() test.Handler { return chainOf(t, directives...) }, queries...)
		})
	}
}

const zoneForLanes = `$TTL 300
@ SOA ns1 hostmaster 1 7200 3600 1209600 60
@ NS ns1
@ MX 10 mail
@ TXT "text of the zone"
ns1 A 192.0.2.1
www A 192.0.2.2
www A 192.0.2.3
www AAAA 2001:db8::2
mail A 192.0.2.4
alias CNAME www
*.wild TXT "from a wildcard"
sub NS ns.sub
ns.sub A 192.0.2.5
`

// questions are all names, in odd cases, with all types, each with an OPT record or without.
func questions() (all []*dns.Msg) {
	for _, name := range []string{"example.org.", "wWw.example.org.", "mail.Example.org.", "alias.example.org.", "x.wild.example.org.",
		"www.sub.example.org.", "none.example.org.", "www.example.net.", "."} {
		for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeMX, dns.TypeNS, dns.TypeTXT, dns.TypeSOA, dns.TypeANY, dns.TypeHTTPS, dns.TypePTR} {
			m := new(dns.Msg).SetQuestion(name, typ)
			switch len(all) % 4 {
			case 1:
				m.SetEdns0(1232, len(all)%8 == 1)
			case 2:
				m.SetEdns0(4096, false)
				m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID}}
			case 3:
				m.RecursionDesired = false
			}
			all = append(all, m)
		}
	}
	return all
}

// Plugins one above the other do the same in both lanes, too, whichever they are.
func TestLanesOfCombinations(t *testing.T) {
	zone := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(zone, []byte(zoneForLanes), 0o644); err != nil {
		t.Fatal(err)
	}
	all := [][2]string{ // in the order of a chain
		{"nsid", "nsid me"}, {"bufsize", "bufsize 700"}, {"errors", "errors"}, {"cookie", "cookie"}, {"local", "local"},
		{"dns64", "dns64 {\nallow_ipv4\n}"}, {"any", "any"}, {"chaos", "chaos v1 me"}, {"loadbalance", "loadbalance"},
		{"rewrite", "rewrite continue name suffix .example.net .example.org answer auto\nrewrite ttl suffix .example.org 30-60"},
		{"acl", "acl {\nblock type TXT net 10.0.0.0/8\nfilter type MX\nsoa 60\nallow\n}"},
		{"header", "header {\nresponse set ra\nquery clear rd\n}"}, {"minimal", "minimal"},
		{"template", "template IN AAAA example.org {\nmatch ^none[.]\nanswer \"{{ .Name }} 60 IN AAAA 2001:db8::1\"\nederror 29 made\nfallthrough\n}"},
		{"hosts", "hosts " + zone + ".none {\n192.0.2.7 www.example.org x.example.net\nfallthrough\n}"},
	}
	queries := questions()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		var chain [][2]string
		name := ""
		for _, d := range all {
			if r.IntN(3) == 0 {
				chain = append(chain, d)
				name += d[0] + " "
			}
		}
		chain = append(chain, [2]string{"file", "file " + zone + " example.org"})
		t.Run(name, func(t *testing.T) {
			test.Lanes(t, func() test.Handler { return chainOf(t, chain...) }, queries...)
		})
	}
}
