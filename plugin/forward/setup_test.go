package forward

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func settingsOf(t *testing.T, corefile string) *settings {
	t.Helper()
	all, err := directive.ParseEach(caddy.NewTestController("dns", corefile), defaults())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("%d directives", len(all))
	}
	return &all[0]
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if want := directive.Doc().Syntax; err != nil || got != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
}

func TestDefaults(t *testing.T) {
	s := settingsOf(t, "forward . 192.0.2.1")
	f := s.forward()
	if f.policy.String() != "random" || f.maxFails != 2 || f.maxAttempts != nil || f.maxConcurrent != 0 || f.probeInterval != 500*time.Millisecond {
		t.Errorf("%+v", f)
	}
	if s.expire != 10*time.Second || s.readTimeout != 2*time.Second || s.dohMethod != "POST" || !s.options.HCRecursionDesired || s.options.HCDomain != "." {
		t.Errorf("%+v", s)
	}
}

func TestOptions(t *testing.T) {
	s := settingsOf(t, `forward Example.ORG 192.0.2.1 {
		except a.example.org B.example.org
		except c.example.org
		force_tcp
		prefer_udp
		expire 20s
		max_age 30s
		max_idle_conns 7
		read_timeout 500ms
		max_fails 5
		max_connect_attempts 9
		doh_method GET
		tls
		tls_servername dns.example.org
		policy round_robin
		hedge
		ede
		case_randomization
		health_check 3s no_rec domain Example.net
		max_concurrent 11
		next NXDOMAIN
		next refused
		next_on_nodata
		failfast_all_unhealthy_upstreams
		failover ServFail FORMERR
		source_address 192.0.2.9
		resolver 192.0.2.3 2001:db8::3 192.0.2.4:5300 [2001:db8::4]:5300 [::1]
	}`)
	var except []string
	for _, n := range s.zones.Excepted() {
		except = append(except, wire.Text(n))
	}
	if wire.Text(s.zones.From) != "example.org." || strings.Join(except, " ") != "a.example.org. b.example.org. c.example.org." {
		t.Errorf("%s, %v", s.zones.From, except)
	}
	want := rules{hedge: true, forceTCP: true, preferUDP: true, failfast: true, nextOnNoData: true}
	want.next = want.next.with(dns.RcodeNameError).with(dns.RcodeRefused)
	want.failover = want.failover.with(dns.RcodeServerFailure).with(dns.RcodeFormatError)
	if s.rules != want || !s.options.ForceTCP || !s.options.PreferUDP || s.options.HCRecursionDesired || s.options.HCDomain != "example.net." {
		t.Errorf("%+v %+v", s.rules, s.options)
	}
	if s.expire != 20*time.Second || s.maxAge != 30*time.Second || s.maxIdleConns != 7 || s.readTimeout != 500*time.Millisecond ||
		s.maxFails != 5 || *s.maxAttempts != 9 || s.dohMethod != "GET" || s.tls == nil || s.tlsServerName != "dns.example.org" ||
		s.policy != "round_robin" || s.probeInterval != 3*time.Second || s.maxConcurrent != 11 || s.source.String() != "192.0.2.9" || !s.ede || !s.randomCase {
		t.Errorf("%+v", s)
	}
	if got := strings.Join(s.resolvers, " "); got != "192.0.2.3:53 [2001:db8::3]:53 192.0.2.4:5300 [2001:db8::4]:5300 [::1]:53" {
		t.Error(got)
	}
	f := s.forward()
	if !f.ForceTCP() || !f.PreferUDP() || f.maxConcurrent != 11 || f.ErrLimitExceeded.Error() != "concurrent queries exceeded maximum 11" {
		t.Errorf("%+v", f)
	}
}

// Options of one directive do not leak into another.
func TestDirectivesAreStrangers(t *testing.T) {
	all, err := directive.ParseEach(caddy.NewTestController("dns", `forward . 192.0.2.1 {
		except a.example.org
		resolver 192.0.2.3
		next NXDOMAIN
	}
	forward . 192.0.2.2 {
		except b.example.org
	}`), defaults())
	if err != nil || len(all) != 2 {
		t.Fatal(err)
	}
	if wire.Text(all[1].zones.Excepted()[0]) != "b.example.org." || len(all[1].zones.Excepted()) != 1 || all[1].resolvers != nil || all[1].rules.next != 0 {
		t.Errorf("%+v", all[1])
	}
}

func TestErrors(t *testing.T) {
	in := func(options string) string { return "forward . 192.0.2.1 {\n" + options + "\n}" }
	sixteen := "forward ."
	for range 16 {
		sixteen += " 192.0.2.1"
	}
	for input, want := range map[string]string{
		"forward":                                    "Wrong argument count or unexpected line ending after 'forward'",
		"forward .":                                  "Wrong argument count or unexpected line ending after '.'",
		"forward a..b 192.0.2.1":                     "unable to normalize 'a..b'",
		"forward . grpc://127.0.0.1":                 "'grpc' is not supported as a destination protocol in forward: grpc://127.0.0.1:443",
		"forward . unix:///tmp/sock":                 "'unix' is not supported as a destination protocol in forward: unix:///tmp/sock",
		"forward . https3://127.0.0.1/dns-query":     "paths are not allowed in HTTPS upstream addresses",
		"forward . tls://":                           `invalid address: "tls://"`,
		"forward . https://192.0.2.1/":               "paths are not allowed in HTTPS upstream addresses (the /dns-query path is used by default): https://192.0.2.1/",
		"forward . /no/such/file":                    `not an IP address, file, or valid domain: "/no/such/file"`,
		"forward . a..b":                             `not an IP address, file, or valid domain: "a..b"`,
		"forward . testdata/empty.conf":              "no valid upstream addresses found",
		"forward . testdata/port.conf":               `testdata/port.conf: nameserver "192.0.2.1:5300" is not an IP address`,
		sixteen:                                      "more than 15 TOs configured: 16",
		in("magic on"):                               "unknown property 'magic'",
		in("except"):                                 "Wrong argument count or unexpected line ending after 'except'",
		in("except a..b"):                            "unable to normalize 'a..b'",
		in("force_tcp yes"):                          "Wrong argument count or unexpected line ending after 'yes'",
		in("prefer_udp yes"):                         "Wrong argument count",
		in("next_on_nodata yes"):                     "Wrong argument count",
		in("failfast_all_unhealthy_upstreams false"): "Wrong argument count",
		in("expire"):                                 "Wrong argument count",
		in("expire -1s"):                             "expire can't be negative: -1s",
		in("expire soon"):                            `time: invalid duration "soon"`,
		in("max_age -1s"):                            "max_age can't be negative: -1s",
		in("max_age 10s\nexpire 20s"):                "max_age (10s) must not be less than expire (20s)",
		in("max_age 5s"):                             "max_age (5s) must not be less than expire (10s)",
		in("max_idle_conns -2"):                      "max_idle_conns can't be negative: -2",
		in("max_idle_conns many"):                    `strconv.Atoi: parsing "many": invalid syntax`,
		in("read_timeout 0s"):                        "read_timeout must be positive: 0s",
		in("max_fails -1"):                           `strconv.ParseUint: parsing "-1": invalid syntax`,
		in("max_connect_attempts many"):              `strconv.ParseUint: parsing "many": invalid syntax`,
		in("doh_method PUT"):                         "doh_method must be either POST or GET",
		in("tls a b c d"):                            "Wrong argument count or unexpected line ending after 'd'",
		in("tls /no/such/file"):                      "error reading /no/such/file",
		in("policy best"):                            "unknown policy 'best'",
		in("health_check -1s"):                       "health_check can't be negative: -1000000000",
		in("health_check 1s rec"):                    "health_check: unknown option rec",
		in("health_check 1s domain"):                 "Wrong argument count",
		in("health_check 1s domain a..b"):            "health_check: invalid domain name a..b",
		in("health_check no_rec"):                    `time: invalid duration "no_rec"`,
		in("max_concurrent -4"):                      "max_concurrent can't be negative: -4",
		in("next NOSUCH"):                            "NOSUCH is not a valid rcode",
		in("failover NoSuch"):                        "NoSuch is not a valid rcode",
		in("failover NOERROR"):                       "NoError cannot be used in failover",
		in("resolver dns.example.org"):               `resolver must be an IP address or IP:port: "dns.example.org"`,
		in("resolver"):                               "Wrong argument count",
		in("source_address x"):                       "invalid IP address: x",
		"forward . tls://192.0.2.1%a {\ntls_servername b\n}": "both forward ('b') and proxy level ('a') TLS servernames are set for upstream proxy '192.0.2.1:853'",
	} {
		_, err := directive.ParseEach(caddy.NewTestController("dns", input), defaults())
		if err == nil || !strings.HasPrefix(err.Error(), "plugin/forward: Testfile:") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q\n got %v\nwant %s", input, err, want)
		}
	}
}

func TestTargets(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver 192.0.2.5\nnameserver 2001:db8::5\nnameserver fe80::5%eth0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"192.0.2.1":                                       "dns 192.0.2.1:53",
		"192.0.2.1:54 dns://192.0.2.2":                    "dns 192.0.2.1:54, dns 192.0.2.2:53",
		"2001:db8::1 [2001:db8::2]:54":                    "dns [2001:db8::1]:53, dns [2001:db8::2]:54",
		"fe80::1%eth0":                                    "dns [fe80::1%eth0]:53",
		"[fe80::1]:54%eth0 192.0.2.1:54%eth0":             "dns [fe80::1%eth0]:54, dns 192.0.2.1:54",
		"tls://192.0.2.1 tls://192.0.2.1:53":              "tls 192.0.2.1:853, tls 192.0.2.1:53",
		"tls://192.0.2.1%a.example:854":                   "tls 192.0.2.1:854 (a.example)",
		"tls://192.0.2.1:854%a.example":                   "tls 192.0.2.1:854 (a.example)",
		"tls://[2001:db8::1]:854%a.example":               "tls [2001:db8::1]:854 (a.example)",
		"tls://fe80::1%a.example":                         "tls [fe80::1]:853 (a.example)",
		"tls://[2001:db8::1%a.example]:853":               "tls [2001:db8::1]:853 (a.example)",
		"https://192.0.2.1":                               "https 192.0.2.1:443",
		"192.0.2.1 dns://192.0.2.1:53 tls://192.0.2.1:53": "dns 192.0.2.1:53",
		file:                            "dns 192.0.2.5:53, dns [2001:db8::5]:53, dns [fe80::5%eth0]:53",
		"testdata/empty.conf 192.0.2.1": "dns 192.0.2.1:53",
		"dns.example.org tls://dns.example.org:854 https://doh.example.org":     "dns dns.example.org:53 by name, tls dns.example.org:854 by name, https doh.example.org:443 by name",
		"quic://192.0.2.1%a.example quic://dns.example.org https3://192.0.2.2":  "quic 192.0.2.1:853 (a.example), quic dns.example.org:853 by name, https3 192.0.2.2:443",
		"tls://192.0.2.1 quic://192.0.2.1 quic://192.0.2.1:853 192.0.2.1:853":   "tls 192.0.2.1:853, quic 192.0.2.1:853",
		"https://192.0.2.1 https3://192.0.2.1":                                  "https 192.0.2.1:443, https3 192.0.2.1:443",
		"localhost:5300":                                                        "dns localhost:5300 by name",
		"[::1] [fe80::1%lo] tls://[::1] 9.9.9.9: dns://9.9.9.8: tls://9.9.9.9:": "dns [::1]:53, dns [fe80::1%lo]:53, tls [::1]:853, dns 9.9.9.9:53, dns 9.9.9.8:53, tls 9.9.9.9:853",
		"tls://[2001:db8::1%a.example] https://[2001:db8::2]":                   "tls [2001:db8::1]:853 (a.example), https [2001:db8::2]:443",
		"dns://" + file: "dns 192.0.2.5:53, dns [2001:db8::5]:53, dns [fe80::5%eth0]:53",
	} {
		targets, err := parseTargets(strings.Fields(args))
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		var got []string
		for _, t := range targets {
			s := t.protocol + " " + t.address()
			if t.serverName != "" {
				s += " (" + t.serverName + ")"
			}
			if t.named {
				s += " by name"
			}
			got = append(got, s)
		}
		if g := strings.Join(got, ", "); g != want {
			t.Errorf("%s\n got %s\nwant %s", args, g, want)
		}
	}
}

func TestServerNames(t *testing.T) {
	s := settingsOf(t, "forward . tls://192.0.2.1%a.example tls://192.0.2.2%a.example tls://192.0.2.3 tls://dns.example.org https://doh.example.org 192.0.2.4")
	var got []string
	for _, target := range s.targets {
		p := s.newProxy(target)
		name := "-"
		if cfg := p.GetTransport().GetTLSConfig(); cfg != nil {
			name = cfg.ServerName
			if cfg.ClientSessionCache == nil {
				t.Errorf("%s remembers no sessions", p.Addr())
			}
		}
		got = append(got, name+"/"+p.DoHHost())
	}
	if g := strings.Join(got, " "); g != "a.example/ a.example/ / dns.example.org/ doh.example.org/doh.example.org -/" {
		t.Error(g)
	}
	if s.secured["a.example"] == s.secured[""] {
		t.Error("one configuration for two names")
	}
	s = settingsOf(t, "forward . https://192.0.2.1 {\ntls_servername dns.example.org\n}")
	p := s.newProxy(s.targets[0])
	if p.DoHHost() != "dns.example.org" || p.GetTransport().GetTLSConfig().ServerName != "dns.example.org" {
		t.Error("not the name that was set")
	}
}

// Relative names of files are below root.
func TestRoot(t *testing.T) {
	c := caddy.NewTestController("dns", "forward . 192.0.2.1 {\ntls ca.pem\n}")
	dnsserver.GetConfig(c).Root = "/no/such/root"
	if err := setup(c); err == nil || !strings.Contains(err.Error(), "/no/such/root/ca.pem") {
		t.Error(err)
	}
}

func TestSetupChains(t *testing.T) {
	c := caddy.NewTestController("dns", "forward a.example.org 192.0.2.1\nforward b.example.org 192.0.2.2")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	plugins := dnsserver.GetConfig(c).Plugin
	if len(plugins) != 2 {
		t.Fatalf("%d plugins", len(plugins))
	}
	last := plugins[1](nil)
	first := plugins[0](last).(*Forward)
	if wire.Text(first.zones.From) != "a.example.org." || first.Next != last {
		t.Error("not in the order of the Corefile")
	}
}
