package bind

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

// lookup knows an interface eth0, and that of loopback among all.
func lookup(name string) ([]string, error) {
	if name == "" {
		return []string{"127.0.0.1", "::1", "192.0.2.1", "2001:db8::1", "fe80::1%eth0"}, nil
	}
	if name == "down0" {
		return nil, nil
	}
	if name != "eth0" {
		return nil, fmt.Errorf("not a valid IP address or interface name: %q", name)
	}
	return []string{"192.0.2.1", "2001:db8::1", "fe80::1%eth0"}, nil
}

func TestHosts(t *testing.T) {
	for _, tc := range []struct {
		input string
		want  []string
		err   string
	}{
		{"bind 192.0.2.7", []string{"192.0.2.7"}, ""},
		{"bind 192.0.2.7 2001:db8::7", []string{"192.0.2.7", "2001:db8::7"}, ""},
		{"bind 192.0.2.7\nbind 2001:db8::7", []string{"192.0.2.7", "2001:db8::7"}, ""},
		{"bind 192.0.2.7 192.0.2.7\nbind 192.0.2.7", []string{"192.0.2.7"}, ""},
		{"bind 2001:db8::7 2001:DB8:0::7", []string{"2001:db8::7"}, ""},
		{"bind 192.0.2.7 ::ffff:192.0.2.7", []string{"192.0.2.7"}, ""},
		{"bind ::ffff:192.0.2.7 192.0.2.8 {\nexcept 192.0.2.7\nipv4\n}", []string{"192.0.2.8"}, ""},
		{"bind ::ffff:192.0.2.7 {\nipv6\n}", nil, "all addresses are excepted"},
		{"bind eth0 192.0.2.1", []string{"192.0.2.1", "2001:db8::1", "fe80::1%eth0"}, ""},
		{"bind eth0 {\nexcept 2001:db8:0::1\n}", []string{"192.0.2.1", "fe80::1%eth0"}, ""},
		{"bind eth0 {\nexcept 192.0.2.1\nexcept fe80::1%eth0 2001:db8::9\n}", []string{"2001:db8::1"}, ""},
		{"bind eth0 {\nexcept fe80:0::1\n}", []string{"192.0.2.1", "2001:db8::1"}, ""},
		{"bind eth0 {\nexcept fe80::1%eth1 fe80::2\n}", []string{"192.0.2.1", "2001:db8::1", "fe80::1%eth0"}, ""},
		{"bind 192.0.2.7 eth0 {\nexcept eth0\n}", []string{"192.0.2.7"}, ""},
		// except holds for its own line
		{"bind 192.0.2.1 {\nexcept 2001:db8::1\n}\nbind eth0", []string{"192.0.2.1", "2001:db8::1", "fe80::1%eth0"}, ""},
		{"bind fe80::7%eth3", []string{"fe80::7%eth3"}, ""},

		{"bind eth0 {\nipv4\n}", []string{"192.0.2.1"}, ""},
		{"bind eth0 {\nipv6\n}", []string{"2001:db8::1", "fe80::1%eth0"}, ""},
		{"bind eth0 {\nipv6\nipv6\nexcept fe80::1%eth0\n}\nbind 192.0.2.9", []string{"2001:db8::1", "192.0.2.9"}, ""},
		{"bind eth0 {\nipv4\nipv6\n}", nil, "ipv4 and ipv6 exclude each other"},
		{"bind 192.0.2.7 {\nipv6\n}", nil, "all addresses are excepted"},
		{"bind eth0 {\nipv4 x\n}", nil, "Wrong argument count"},
		{"bind 0.0.0.0", []string{"0.0.0.0"}, ""},
		{"bind ::", []string{"::"}, ""},
		{"bind 0.0.0.0 {\nexcept 127.0.0.1\n}", []string{"0.0.0.0"}, ""},
		{"bind 0.0.0.0 {\nipv4\n}", []string{"127.0.0.1", "192.0.2.1"}, ""},
		{"bind :: {\nipv6\nexcept ::1\n}", []string{"2001:db8::1", "fe80::1%eth0"}, ""},

		{"bind", nil, "plugin/bind: Testfile:1 - Error during parsing: at least one address or interface name is expected"},
		{"bind eth0 {\nexcept\n}", nil, "at least one address or interface must be given to except subdirective"},
		{"bind eth0 {\nfoo\n}", nil, `invalid option "foo"`},
		{"bind 192.0.2.300", nil, `not a valid IP address or interface name: "192.0.2.300"`},
		{"bind \"\"", nil, `not a valid IP address or interface name: ""`},
		{"bind \"\" {\nipv4\n}", nil, `not a valid IP address or interface name: ""`},
		{"bind eth0 {\nexcept \"\"\n}", nil, `not a valid IP address or interface name: ""`},
		{"bind eth0 {\nexcept eth1\n}", nil, `not a valid IP address or interface name: "eth1"`},
		{"bind eth0 {\nexcept eth0\n}", nil, "all addresses are excepted"},
		{"bind down0", nil, "there is nothing to listen on: no address on down0"},
		{"bind down0\nbind 192.0.2.7", []string{"192.0.2.7"}, ""},
	} {
		rules, err := directive.ParseEach(caddy.NewTestController("dns", tc.input), rule{})
		var got []string
		if err == nil {
			got, err = hosts(rules, lookup)
		}
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%q: got %q, %v, want %q", tc.input, got, err, tc.want)
		}
	}
}

func TestSetupAndInterfaces(t *testing.T) {
	ifaces, err := net.Interfaces()
	if err != nil {
		t.Skip("no interfaces to look at:", err)
	}
	for _, i := range ifaces {
		if i.Flags&net.FlagLoopback == 0 {
			continue
		}
		c := caddy.NewTestController("dns", "bind "+i.Name)
		if err := setup(c); err != nil {
			t.Fatal(err)
		}
		if got := dnsserver.GetConfig(c).ListenHosts; !slices.Contains(got, "127.0.0.1") && !slices.Contains(got, "::1") {
			t.Errorf("interface %s has %q", i.Name, got)
		}
	}
	if err := setup(caddy.NewTestController("dns", "bind no-such-interface")); err == nil || !strings.HasPrefix(err.Error(), "plugin/bind: not a valid") {
		t.Errorf("got error %v", err)
	}
}

// A socket at 0.0.0.0 takes what comes over IPv6, too: with ipv4 there must be none.
func TestOneFamily(t *testing.T) {
	c := caddy.NewTestController("dns", "bind 0.0.0.0 {\nipv4\n}")
	if err := setup(c); err != nil {
		t.Skip("no address of IPv4:", err)
	}
	for _, h := range dnsserver.GetConfig(c).ListenHosts {
		if a, err := netip.ParseAddr(h); err != nil || !a.Is4() || a.IsUnspecified() {
			t.Errorf("%q, %v", h, err)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
