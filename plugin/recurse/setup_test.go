package recurse

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"

	"github.com/coredns/caddy"
)

func parseText(text string) (settings, error) {
	c := caddy.NewTestController("dns", text)
	c.ServerBlockKeys = []string{"dns://.:53"}
	s := defaults()
	err := directive.Parse(c, &s)
	return s, err
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if want := directive.Doc().Syntax; err != nil || got != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
}

func TestDefaults(t *testing.T) {
	s, err := parseText("recurse")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.zones) != 1 || s.zones[0] != rrset.Root || !s.mixCase || !s.cookies || s.udpSize != 1232 || s.timeout != 5*time.Second ||
		s.budget != (iterate.Budget{Queries: 128, Depth: 8, Aliases: 11, Hosts: 13, Octets: 512 << 10}) || s.perZone != 200 || s.perServer != 200 ||
		s.maxTTL != 86400 || s.maxNegative != 3600 || !s.special || !s.prefetch || s.snoop || s.port != 53 || s.servers != 50000 || s.keep != 15*time.Minute {
		t.Errorf("%+v", s)
	}
	for a, denied := range map[string]bool{"127.0.0.1": true, "::1": true, "0.0.0.0": true, "224.0.0.1": true, "198.41.0.4": false, "10.0.0.1": false, "2001:7fd::1": false} {
		if s.denied(netip.MustParseAddr(a)) != denied {
			t.Errorf("%s: denied is not %v", a, denied)
		}
	}
	if d := builtinHints(); len(d.Hosts) != 13 || len(d.Hosts[12].Addrs) != 2 || d.Hosts[1].Addrs[0].String() != "170.247.170.2" {
		t.Errorf("hints %+v", d)
	}
}

func TestOptions(t *testing.T) {
	s, err := parseText(`recurse example.org {
		stub Corp.example 192.0.2.1 192.0.2.2:5300 [2001:db8::1]:54
		qname_minimisation strict
		case_randomization off
		cookies off
		family prefer_ipv6
		source_address 192.0.2.9 2001:db8::9
		udp_size 4096
		timeout 2s
		max_queries 50
		memory 16M
		infra 2000 5m
		min_ttl 5
		max_ttl 500
		nxdomain_cut always
		special on except 10.in-addr.arpa
		deny_servers 198.18.0.0/15
		allow_servers 127.0.0.0/8
		private_addresses 10.0.0.0/8 192.168.0.0/16 except home.example
		snoop
		authority_port 5300
	}`)
	if err != nil {
		t.Fatal(err)
	}
	d := s.stubs[rrset.MustName("corp.example.")]
	if d == nil || len(d.Hosts) != 3 || d.Hosts[1].Port != 5300 || d.Hosts[2].Port != 54 || !d.Fixed {
		t.Fatalf("stub %+v", d)
	}
	if s.minimise != iterate.Strict || s.mixCase || s.cookies || s.family != "prefer_ipv6" || len(s.sources[0]) != 1 || len(s.sources[1]) != 1 || s.memory != 16<<20 ||
		s.servers != 2000 || s.keep != 5*time.Minute || s.cut != iterate.CutAlways || len(s.notSpecial) != 1 || len(s.private) != 2 || len(s.notPrivate) != 1 || !s.snoop || s.port != 5300 {
		t.Errorf("%+v", s)
	}
	r := s.resolver("test")
	defer func() {
		for _, p := range r.proxies {
			p.Stop()
		}
	}()
	for name, local := range map[string]string{"x.onion.": "onion.", "1.0.0.10.in-addr.arpa.": "", "1.20.172.in-addr.arpa.": "20.172.in-addr.arpa.", "example.org.": "", "a.localhost.": "localhost."} {
		want := ""
		if local != "" {
			want = rrset.MustName(local)
		}
		if got := r.specials.zone([]byte(rrset.MustName(name))); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if r.conf.Denied(netip.MustParseAddr("127.0.0.1")) || !r.conf.Denied(netip.MustParseAddr("198.18.0.1")) {
		t.Error("deny_servers, allow_servers")
	}
	for text, want := range map[string]bool{"10.1.1.1": true, "::ffff:10.1.1.1": true, "::ffff:8.8.8.8": false, "8.8.8.8": false, "::1": false} {
		a := netip.MustParseAddr(text)
		if r.conf.Private(rrset.MustName("a.home.example."), a) || r.conf.Private(rrset.MustName("a.example."), a) != want {
			t.Errorf("private_addresses: %s", text)
		}
	}
}

// A zone that is served from elsewhere wins, be it larger than one whose names stay inside or a part of it.
func TestSpecialParts(t *testing.T) {
	s := newSpecials([]string{rrset.MustName("20.10.in-addr.arpa."), rrset.MustName("corp.home.arpa."), rrset.MustName("example.org.")})
	for name, want := range map[string]string{
		"1.0.20.10.in-addr.arpa.": "", "20.10.in-addr.arpa.": "", "1.0.21.10.in-addr.arpa.": "10.in-addr.arpa.", "10.in-addr.arpa.": "10.in-addr.arpa.",
		"www.corp.home.arpa.": "", "corp.home.arpa.": "", "xcorp.home.arpa.": "home.arpa.", "home.arpa.": "home.arpa.", "www.example.org.": "",
	} {
		if want != "" {
			want = rrset.MustName(want)
		}
		if got := s.zone([]byte(rrset.MustName(name))); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Who writes down the address of a server means it; but not where nobody can be, nor ourselves.
func TestDeniedStubs(t *testing.T) {
	s := defaults()
	s.deny = []netip.Prefix{netip.MustParsePrefix("192.0.2.128/25"), netip.MustParsePrefix("10.0.0.0/8")}
	s.allow = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("127.9.0.0/16")}
	for _, tc := range []struct {
		listeners string
		addr      string
		denied    bool
	}{
		{"dns://:53", "192.0.2.1:53", false},
		{"dns://:53", "[2001:db8::1]:53", false},
		{"dns://:53", "192.0.2.129:53", true},
		{"dns://:53", "10.0.0.1:53", true},
		{"dns://:53", "10.1.0.1:53", false},
		{"dns://:53", "0.0.0.0:53", true},
		{"dns://:53", "[::]:53", true},
		{"dns://:53", "224.0.0.1:53", true},
		{"dns://:53", "127.0.0.1:53", true},
		{"dns://0.0.0.0:53", "[::1]:53", true},
		{"dns://:53", "127.0.0.1:5300", false},
		{"dns://:53", "127.9.0.1:53", false}, // is allowed
		{"dns://127.0.0.2:53", "127.0.0.1:53", false},
		{"tls://:53", "127.0.0.1:53", false},
		{"tls://:853 dns://127.0.0.1:53", "127.0.0.1:53", true},
		{"dns://[::ffff:127.0.0.1]:53", "127.0.0.1:53", true},
	} {
		s.listeners = listenersOf(strings.Fields(tc.listeners))
		if got := s.deniedStub(netip.MustParseAddrPort(tc.addr)); got != tc.denied {
			t.Errorf("%s with listeners %s: denied is %v", tc.addr, tc.listeners, got)
		}
	}
}

// A server that others tell of is not asked where the block itself listens.
func TestOwnListeners(t *testing.T) {
	s := defaults()
	s.allow = []netip.Prefix{netip.MustParsePrefix("127.9.0.0/16")}
	s.listeners = listenersOf([]string{"dns://:53"})
	for addr, want := range map[string]bool{"127.0.0.1:53": true, "127.0.0.1:5300": false, "127.9.0.1:53": false, "192.0.2.1:53": false} {
		if got := s.resolver("own").conf.Own(netip.MustParseAddrPort(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

func TestErrors(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("a. 300 IN A 192.0.2.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"recurse\nrecurse":                                       "can only be used once per Server Block",
		"recurse {\n nonsense\n}":                                `unknown property "nonsense"`,
		"recurse a..b":                                           `invalid zone "a..b"`,
		"recurse {\n hints " + empty + "\n}":                     "has no root server",
		"recurse {\n hints /nonexistent\n}":                      "open /nonexistent",
		"recurse {\n stub a.b 192.0.2.1\n stub A.B 192.0.2.2\n}": "is defined twice",
		"recurse {\n stub \"\" 192.0.2.1\n}":                     `invalid zone ""`,
		"recurse {\n ecs \"\"\n}":                                `invalid zone ""`,
		"recurse {\n stub a.b name\n}":                           "is not an IP address",
		"recurse {\n stub a.b\n}":                                "Wrong argument count",
		"recurse {\n stub a.b 192.0.2.1:0\n}":                    `"192.0.2.1:0" is not an IP address, with or without a port`,
		"recurse {\n local_root transfer 192.0.2.1:0\n}":         `"192.0.2.1:0" is not an IP address, with or without a port`,
		"recurse {\n private_addresses 10.0.0.0/8 except\n}":     "Wrong argument count",
		"recurse {\n private_addresses except a.b\n}":            "Wrong argument count",
		"recurse {\n qname_minimisation maybe\n}":                "relaxed, strict, off",
		"recurse {\n udp_size 100\n}":                            "udp_size must be",
		"recurse {\n timeout 1ms\n}":                             "timeout must be between 100ms and 30s",
		"recurse {\n max_queries 0\n}":                           "max_queries must be",
		"recurse {\n max_queries 1001\n}":                        "max_queries must be",
		"recurse {\n memory 1M\n}":                               "at least 4M",
		"recurse {\n memory x\n}":                                "invalid size",
		"recurse {\n infra 10\n}":                                "infra must be",
		"recurse {\n infra 1000 1s\n}":                           "infra must be between",
		"recurse {\n min_ttl 100\n max_ttl 50\n}":                "min_ttl 100 is more than max_ttl 50",
		"recurse {\n source_address nobody\n}":                   `invalid source address "nobody"`,
		"recurse {\n special maybe\n}":                           "'on' or 'off'",
		"recurse {\n special on but x\n}":                        "Wrong argument count",
		"recurse {\n deny_servers x\n}":                          "x",
		"recurse {\n authority_port 0\n}":                        "authority_port must be",
		"recurse {\n cookies perhaps\n}":                         "on, off",
	} {
		if _, err := parseText(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Each query to a stub's server asks whether that is this machine: without asking the system each time.
func TestDeniedStubCostsNothing(t *testing.T) {
	s := defaults()
	s.listeners = listenersOf([]string{"dns://:53"})
	for _, addr := range []string{"192.0.2.1:53", "127.0.0.1:53", "192.0.2.1:54"} {
		a := netip.MustParseAddrPort(addr)
		s.deniedStub(a)
		if n := testing.AllocsPerRun(100, func() { s.deniedStub(a) }); n != 0 {
			t.Errorf("%s: %v allocations", addr, n)
		}
	}
}

// A family is left out while there is a way over the other alone.
func TestWays(t *testing.T) {
	defer func(f func(netip.Addr) bool) { usable = f }(usable)
	var four, six bool
	usable = func(a netip.Addr) bool { return a.Is4() && four || a.Is6() && six }
	for _, family := range []string{"both", "prefer_ipv6", "ipv4"} {
		four, six = false, true
		s, err := parseText("recurse {\nfamily " + family + "\n}")
		if err != nil {
			t.Fatal(err)
		}
		r := s.resolver("")
		for _, tc := range [][4]bool{{false, true, true, false}, {true, true, false, false}, {true, false, false, true}, {false, false, false, false}} {
			four, six = tc[0], tc[1]
			r.findWays()
			got := [2]bool{r.conf.Shared.NoIPv4.Load(), r.conf.Shared.NoIPv6.Load()}
			if want := [2]bool(tc[2:]); family != "ipv4" && got != want || family == "ipv4" && got != [2]bool{} {
				t.Errorf("%s, ways %v %v: left out %v", family, four, six, got)
			}
		}
		for _, p := range r.proxies {
			p.Stop()
		}
	}
}
