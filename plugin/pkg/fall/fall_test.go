package fall_test

import (
	"slices"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/fall"
)

func TestThrough(t *testing.T) {
	two := fall.F{Zones: []string{"example.org.", "10.in-addr.arpa."}}
	for _, tc := range []struct {
		name  string
		f     fall.F
		qname string
		want  bool
	}{
		{"zero", fall.Zero, "www.example.org.", false},
		{"zero value", fall.F{}, ".", false},
		{"root", fall.Root, "www.example.org.", true},
		{"root itself", fall.Root, ".", true},
		{"apex", two, "example.org.", true},
		{"below", two, "www.example.org.", true},
		{"far below", two, "a.b.c.example.org.", true},
		{"other case", two, "WWW.Example.ORG.", true},
		{"second zone", two, "1.0.0.10.in-addr.arpa.", true},
		{"above", two, "org.", false},
		{"the root is above", two, ".", false},
		{"beside", two, "example.com.", false},
		{"only ends alike", two, "wwwexample.org.", false},
		{"escaped dot", two, `a\.example.org.`, false},
		{"escaped backslash", two, `a\\.example.org.`, true},
	} {
		if got := tc.f.Through(tc.qname); got != tc.want {
			t.Errorf("%s: %q of %q: got %t", tc.name, tc.qname, tc.f.Zones, got)
		}
	}
}

func TestSetZonesFromArgs(t *testing.T) {
	for _, tc := range []struct{ args, want []string }{
		{nil, []string{"."}},
		{[]string{}, []string{"."}},
		{[]string{"."}, []string{"."}},
		{[]string{"Example.ORG"}, []string{"example.org."}},
		{[]string{"example.org.", "example.com"}, []string{"example.org.", "example.com."}},
		{[]string{"dns://example.org:53", "tls://example.com"}, []string{"example.org.", "example.com."}},
		{[]string{"10.0.0.0/8", "192.0.2.0/23"}, []string{"10.in-addr.arpa.", "2.0.192.in-addr.arpa.", "3.0.192.in-addr.arpa."}},
		{[]string{"2001:db8::/32"}, []string{"8.b.d.0.1.0.0.2.ip6.arpa."}},
		{[]string{"a..b", "example.org:", "example.org:dns", "", ":53", "example.org"}, []string{"example.org."}},
		{[]string{"a..b"}, nil},
		{[]string{"ä.org", `dec\046imal.org`, "a@b.org"}, []string{`\195\164.org.`, `dec\.imal.org.`, `a\@b.org.`}}, // as in queries
	} {
		var f fall.F
		f.SetZonesFromArgs(tc.args)
		if !slices.Equal(f.Zones, tc.want) {
			t.Errorf("%q: got %q, want %q", tc.args, f.Zones, tc.want)
		}
		f.SetZonesFromArgs([]string{"example.net"})
		if !f.Equal(fall.F{Zones: []string{"example.net."}}) {
			t.Errorf("%q, then example.net: got %q", tc.args, f.Zones)
		}
	}
}

func TestRootIsNotShared(t *testing.T) {
	var f fall.F
	f.SetZonesFromArgs(nil)
	f.Zones[0] = "example.org."
	if !fall.Root.Through("example.com.") {
		t.Error("a list made by SetZonesFromArgs changed Root")
	}
}

func TestEqual(t *testing.T) {
	f := fall.F{Zones: []string{"a.", "b."}}
	for _, tc := range []struct {
		zones []string
		want  bool
	}{
		{[]string{"a.", "b."}, true},
		{[]string{"b.", "a."}, false},
		{[]string{"a."}, false},
		{nil, false},
	} {
		if got := f.Equal(fall.F{Zones: tc.zones}); got != tc.want {
			t.Errorf("%q: got %t", tc.zones, got)
		}
	}
	if !(&fall.F{Zones: []string{}}).Equal(fall.Zero) {
		t.Error("no zones are not equal to Zero")
	}
}

// The library's own test of a subdomain is the oracle.
func FuzzThrough(f *testing.F) {
	f.Add("www.example.org.", "example.org.")
	f.Add(`a\.example.org.`, "EXAMPLE.org.")
	f.Fuzz(func(t *testing.T, qname, zone string) {
		for _, name := range []string{qname, zone} {
			// Names come from the wire, so what is not printable is written \DDD.
			wire := make([]byte, 256)
			n, err := dns.PackDomainName(name, wire, 0, nil, false)
			if err != nil {
				return
			}
			if back, _, err := dns.UnpackDomainName(wire[:n], 0); err != nil || back != name {
				return
			}
		}
		if got, want := (fall.F{Zones: []string{zone}}).Through(qname), dns.IsSubDomain(zone, qname); got != want {
			t.Errorf("%q of %q: got %t, want %t", qname, zone, got, want)
		}
	})
}

func TestThroughDoesNotAllocate(t *testing.T) {
	f := fall.F{Zones: []string{"example.org.", "example.com."}}
	if n := testing.AllocsPerRun(100, func() { f.Through("www.Example.com.") }); n > 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}
