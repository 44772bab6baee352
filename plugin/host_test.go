package plugin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

func TestSplitHostPort(t *testing.T) {
	long := strings.Repeat("a.", 128) + "example"
	for _, tc := range []struct {
		in    string
		hosts []string
		port  string
		err   string
	}{
		{"example.org", []string{"example.org"}, "", ""},
		{"Example.org.:1053", []string{"Example.org."}, "1053", ""},
		{".", []string{"."}, "", ""},
		{".:53", []string{"."}, "53", ""},
		{"example.org:-1", []string{"example.org"}, "-1", ""},
		{"*.example.org", []string{"*.example.org"}, "", ""},
		{"under_score.example.org", []string{"under_score.example.org"}, "", ""},
		{"10.0.0.0/24", []string{"0.0.10.in-addr.arpa."}, "", ""},
		{"10.0.0.5/24:5353", []string{"0.0.10.in-addr.arpa."}, "5353", ""},
		{"10.1.0.0/23", []string{"0.1.10.in-addr.arpa.", "1.1.10.in-addr.arpa."}, "", ""},
		{"2001:db8::/31", []string{"8.b.d.0.1.0.0.2.ip6.arpa.", "9.b.d.0.1.0.0.2.ip6.arpa."}, "", ""},
		{"2001:db8::/32:53", []string{"8.b.d.0.1.0.0.2.ip6.arpa."}, "53", ""},
		{"0.0.0.0/0", []string{"in-addr.arpa."}, "", ""},
		{"10.0.0.1", []string{"10.0.0.1"}, "", ""},

		{"example.org:", nil, "", `expecting data after last colon: "example.org:"`},
		{".:", nil, "", `expecting data after last colon: ".:"`},
		{"example.org:abc", nil, "", "port"},
		{":53", nil, "", "zone is not a valid domain name: "},
		{"", nil, "", "zone is not a valid domain name: "},
		{"a..b", nil, "", "zone is not a valid domain name: a..b"},
		{`\300.b`, nil, "", `zone is not a valid domain name: \300.b`},
		{`\254.b:1053`, []string{`\254.b`}, "1053", ""},
		{long, nil, "", fmt.Sprintf("specified zone is too long: %d > 255", len(long))},
		{"::/0", nil, "", "invalid CIDR ::/0"},
		{"0::/16", nil, "", "invalid CIDR 0::/16"},
	} {
		hosts, port, err := plugin.SplitHostPort(tc.in)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got error %v, want %q", tc.in, err, tc.err)
			}
			continue
		}
		if err != nil || !slices.Equal(hosts, tc.hosts) || port != tc.port {
			t.Errorf("%q: got %q %q %v, want %q %q", tc.in, hosts, port, err, tc.hosts, tc.port)
		}
	}
	for _, tc := range []struct {
		in string
		n  int
	}{{"10.0.0.0/9", 128}, {"10.2.0.0/27", 32}} {
		if hosts, _, err := plugin.SplitHostPort(tc.in); err != nil || len(hosts) != tc.n {
			t.Errorf("%s: %d zones, want %d (%v)", tc.in, len(hosts), tc.n, err)
		}
	}
}

func TestNormalizeExact(t *testing.T) {
	for in, want := range map[string][]string{
		"Example.ORG":              {"example.org."},
		"tls://Example.org:853":    {"example.org."},
		"dns://.:53":               {"."},
		"10.1.0.0/23":              {"0.1.10.in-addr.arpa.", "1.1.10.in-addr.arpa."},
		"grpc://10.0.0.0/24:1443":  {"0.0.10.in-addr.arpa."},
		"a..b":                     nil,
		"":                         nil,
		"https3://example.org.:44": {"example.org."},
	} {
		if got := plugin.Host(in).NormalizeExact(); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestDeprecatedNormalize(t *testing.T) {
	out := logtest.Capture(t)

	if got := plugin.Host("10.1.0.0/23").Normalize(); got != "0.1.10.in-addr.arpa." {
		t.Errorf("got %q", got)
	}
	if _, err := plugin.Host("a..b").MustNormalize(); err == nil {
		t.Error("no error")
	}
	if got := out.String(); strings.Count(got, "host_test.go") != 2 || !strings.Contains(got, "[WARNING]") {
		t.Errorf("the callers are not named: %q", got)
	}
}

func TestOrigins(t *testing.T) {
	keys := []string{"dns://Example.org.:53", "dns://example.net.:53"}
	for _, tc := range []struct{ args, want []string }{
		{nil, []string{"example.org.", "example.net."}},
		{[]string{"A.example", "a..b", "10.0.0.0/24"}, []string{"a.example.", "0.0.10.in-addr.arpa."}},
	} {
		if got := plugin.OriginsFromArgsOrServerBlock(tc.args, keys); !slices.Equal(got, tc.want) {
			t.Errorf("%q: got %q, want %q", tc.args, got, tc.want)
		}
	}
	for name, args := range map[string][]string{"zones that are none": {"a..b"}, "no keys": nil} {
		if got := plugin.OriginsFromArgsOrServerBlock(args, nil); got == nil || len(got) != 0 {
			t.Errorf("%s: got %#v, want an empty slice", name, got)
		}
	}
	odd := []string{"a..b", "Example.org"}
	if got := plugin.OriginsFromArgsOrServerBlock(nil, odd); !slices.Equal(got, []string{"a..b", "example.org."}) {
		t.Errorf("of keys %q: got %q", odd, got)
	}
	if keys[0] != "dns://Example.org.:53" {
		t.Error("the keys were changed")
	}
}

func FuzzSplitHostPort(f *testing.F) {
	f.Add("example.org:53")
	f.Add("2001:db8::/33:5")
	f.Add("[::]:53")
	f.Fuzz(func(t *testing.T, s string) {
		hosts, _, err := plugin.SplitHostPort(s)
		if (err == nil) != (len(hosts) > 0) {
			t.Errorf("%q: %q, %v", s, hosts, err)
		}
	})
}

// A zone that several keys have is there once: it is not to be read, fetched or signed for each of them.
func TestZonesOfSeveralKeys(t *testing.T) {
	keys := []string{"dns://example.org.:53", "tls://Example.org.:853", "dns://example.net.:53", "https://example.org.:443"}
	for _, tc := range []struct{ args, want []string }{
		{nil, []string{"example.org.", "example.net."}},
		{[]string{"b.example", "a.example", "B.example.", "10.0.0.0/23", "10.0.1.0/24"}, []string{"b.example.", "a.example.", "0.0.10.in-addr.arpa.", "1.0.10.in-addr.arpa."}},
	} {
		if got, err := plugin.ZonesFromArgs(tc.args, keys); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%q: got %q, %v, want %q", tc.args, got, err, tc.want)
		}
	}
}
