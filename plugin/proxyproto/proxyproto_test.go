package proxyproto

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"github.com/coredns/caddy"
	"github.com/pires/go-proxyproto"
)

func TestPolicy(t *testing.T) {
	const use, ignore, reject, skip = proxyproto.USE, proxyproto.IGNORE, proxyproto.REJECT, proxyproto.SKIP
	for _, tc := range []struct {
		options       string
		v4, other, v6 proxyproto.Policy // of 192.0.2.1, 198.51.100.1 and 2001:db8::1
	}{
		{"", use, use, use},
		{"allow", use, use, use},
		{"allow 192.0.2.0/24", use, ignore, ignore},
		{"allow 192.0.2.77/24", use, ignore, ignore}, // host bits do not count
		{"allow 192.0.2.0/24 2001:db8::/32", use, ignore, use},
		{"allow 192.0.2.0/24\nallow 198.51.100.1/32", use, use, ignore},
		{"allow ::/0", ignore, ignore, use},
		{"default ignore", ignore, ignore, ignore},
		{"default USE\nallow 192.0.2.0/24", use, use, use},
		{"default reject\nallow 192.0.2.0/24", use, reject, reject},
		{"default Skip\nallow 2001:db8::1/128", skip, skip, use},
	} {
		c := caddy.NewTestController("dns", "proxyproto {\n"+tc.options+"\n}")
		if err := setup(c); err != nil {
			t.Errorf("%q: %v", tc.options, err)
			continue
		}
		ask := dnsserver.GetConfig(c).ProxyProtoConnPolicy
		for _, from := range []struct {
			addr net.Addr
			want proxyproto.Policy
		}{
			{&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}, tc.v4},
			{&net.TCPAddr{IP: net.IP{198, 51, 100, 1}, Port: 5}, tc.other},
			{&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 5, Zone: "x"}, tc.v6},
			{&net.UnixAddr{Name: "x"}, reject},
		} {
			got, err := ask(proxyproto.ConnPolicyOptions{Upstream: from.addr})
			if err != nil || got != from.want {
				t.Errorf("%q: %v: got %v, %v, want %v", tc.options, from.addr, got, err, from.want)
			}
		}
		if got, _ := ask(proxyproto.ConnPolicyOptions{}); got != reject {
			t.Errorf("%q: nobody: got %v", tc.options, got)
		}
	}
}

func TestSetupSessions(t *testing.T) {
	for options, want := range map[string]struct {
		ttl time.Duration
		max int
	}{
		"": {0, 0}, "udp_session_tracking 28s": {28 * time.Second, 10240}, "udp_session_tracking 1m 500": {time.Minute, 500},
	} {
		c := caddy.NewTestController("dns", "proxyproto {\n"+options+"\n}")
		if err := setup(c); err != nil {
			t.Errorf("%q: %v", options, err)
		}
		got := dnsserver.GetConfig(c)
		if got.ProxyProtoUDPSessionTrackingTTL != want.ttl || got.ProxyProtoUDPSessionTrackingMaxSessions != want.max {
			t.Errorf("%q: got %v, %d", options, got.ProxyProtoUDPSessionTrackingTTL, got.ProxyProtoUDPSessionTrackingMaxSessions)
		}
	}
}

func TestSetupErrors(t *testing.T) {
	const place = "Testfile:2 - Error during parsing: "
	for input, want := range map[string]string{
		"proxyproto extra":                                     "Wrong argument count",
		"proxyproto {\nunknown\n}":                             place + "unknown option 'unknown'",
		"proxyproto {\nallow x\n}":                             place + "x: invalid CIDR address: x",
		"proxyproto {\nallow 192.0.2.1\n}":                     "192.0.2.1: invalid CIDR address: 192.0.2.1",
		"proxyproto {\ndefault\n}":                             "Wrong argument count",
		"proxyproto {\ndefault maybe\n}":                       "Wrong argument count",
		"proxyproto {\nudp_session_tracking\n}":                "Wrong argument count",
		"proxyproto {\nudp_session_tracking 1s 2 3\n}":         "Wrong argument count",
		"proxyproto {\nudp_session_tracking soon\n}":           place + `udp_session_tracking: invalid duration "soon": `,
		"proxyproto {\nudp_session_tracking -1s\n}":            `udp_session_tracking: invalid duration "-1s": `,
		"proxyproto {\nudp_session_tracking 1s x\n}":           `udp_session_tracking: invalid max sessions "x": must be a positive integer`,
		"proxyproto {\nudp_session_tracking 1s 0\n}":           `udp_session_tracking: invalid max sessions "0": must be a positive integer`,
		"proxyproto\nproxyproto":                               "proxy protocol already configured for this server instance",
		"proxyproto {\nallow 192.0.2.0/24\n}\nproxyproto {\n}": "proxy protocol already configured for this server instance",
	} {
		if err := setup(caddy.NewTestController("dns", input)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", input, err, want)
		}
	}
}

// Blocks that share a listener are warned of if they say different things, as only the first one is heard.
func TestBlocksOfOneListener(t *testing.T) {
	out := logtest.Capture(t)
	const warning = "dns://:53: server blocks set proxyproto differently for what they share: using that of a.\n"
	for second, want := range map[string]string{
		"b {\nproxyproto {\nallow 198.51.100.0/24\n}\n}":                       warning,
		"b {\nproxyproto {\nallow 192.0.2.0/24\nudp_session_tracking 5s\n}\n}": warning,
		"b {\nproxyproto\n}\nc {\nproxyproto {\ndefault skip\n}\n}":            warning,
		"b tls://b {\nproxyproto {\nallow 192.0.2.0/24\n}\n}":                  "",
		"b {\n}":                "",
		"b:54 {\nproxyproto\n}": "",
	} {
		out.Take()
		text := "a {\nproxyproto {\nallow 192.0.2.0/24\n}\n}\n" + second
		if err := dnsserver.Validate(caddy.CaddyfileInput{Contents: []byte(text), ServerTypeName: "dns"}); err != nil {
			t.Errorf("%q: %v", second, err)
		}
		if _, got, _ := strings.Cut(out.String(), "[WARNING] "); got != want {
			t.Errorf("%q: got %q, want %q", second, got, want)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
