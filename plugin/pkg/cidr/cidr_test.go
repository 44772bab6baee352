package cidr_test

import (
	"math/bits"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/cidr"
)

func parse(t testing.TB, s string) *net.IPNet {
	t.Helper()
	_, n, err := net.ParseCIDR(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSplitAndReverse(t *testing.T) {
	for _, tc := range []struct{ net, nets, zones string }{
		{"10.0.0.0/24", "10.0.0.0/24", "0.0.10.in-addr.arpa."},
		{"10.0.0.5/24", "10.0.0.0/24", "0.0.10.in-addr.arpa."},
		{"10.0.0.0/8", "10.0.0.0/8", "10.in-addr.arpa."},
		{"0.0.0.0/0", "0.0.0.0/0", "in-addr.arpa."},
		{"10.1.0.0/23", "10.1.0.0/24 10.1.1.0/24", "0.1.10.in-addr.arpa. 1.1.10.in-addr.arpa."},
		{"10.254.0.0/15", "10.254.0.0/16 10.255.0.0/16", "254.10.in-addr.arpa. 255.10.in-addr.arpa."},
		{"192.0.2.254/31", "192.0.2.254/32 192.0.2.255/32", "254.2.0.192.in-addr.arpa. 255.2.0.192.in-addr.arpa."},
		{"192.0.2.1/32", "192.0.2.1/32", "1.2.0.192.in-addr.arpa."},
		{"255.255.255.254/31", "255.255.255.254/32 255.255.255.255/32", "254.255.255.255.in-addr.arpa. 255.255.255.255.in-addr.arpa."},
		{"2001:db8::/32", "2001:db8::/32", "8.b.d.0.1.0.0.2.ip6.arpa."},
		{"2001:db8::/31", "2001:db8::/32 2001:db9::/32", "8.b.d.0.1.0.0.2.ip6.arpa. 9.b.d.0.1.0.0.2.ip6.arpa."},
		{"2001:db8:abc0::/43", "2001:db8:abc0::/44 2001:db8:abd0::/44", "c.b.a.8.b.d.0.1.0.0.2.ip6.arpa. d.b.a.8.b.d.0.1.0.0.2.ip6.arpa."},
		{"::/0", "::/0", "ip6.arpa."},
	} {
		nets := cidr.Split(parse(t, tc.net))
		if got := strings.Join(nets, " "); got != tc.nets {
			t.Errorf("%s: got networks %s, want %s", tc.net, got, tc.nets)
		}
		if got := strings.Join(cidr.Reverse(nets), " "); got != tc.zones {
			t.Errorf("%s: got zones %s, want %s", tc.net, got, tc.zones)
		}
	}
}

func TestSplitCounts(t *testing.T) {
	for s, tc := range map[string]struct {
		n           int
		first, last string
	}{
		"10.0.0.0/9":       {128, "10.0.0.0/16", "10.127.0.0/16"},
		"128.0.0.0/1":      {128, "128.0.0.0/8", "255.0.0.0/8"},
		"10.2.0.0/27":      {32, "10.2.0.0/32", "10.2.0.31/32"},
		"2001:db8::/29":    {8, "2001:db8::/32", "2001:dbf::/32"},
		"2001:db8::f8/125": {8, "2001:db8::f8/128", "2001:db8::ff/128"},
	} {
		nets := cidr.Split(parse(t, s))
		if len(nets) != tc.n || nets[0] != tc.first || nets[len(nets)-1] != tc.last {
			t.Errorf("%s: got %d networks %v", s, len(nets), nets)
		}
	}
}

func TestSplitWhatIsNoNetwork(t *testing.T) {
	for name, n := range map[string]*net.IPNet{
		"nil":            nil,
		"empty":          {},
		"broken mask":    {IP: net.IPv4(10, 0, 0, 0), Mask: net.IPv4Mask(255, 0, 255, 0)},
		"mixed families": {IP: net.ParseIP("2001:db8::"), Mask: net.CIDRMask(24, 32)},
	} {
		if got := cidr.Split(n); got != nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
	// An IPv4 address in its long form is as good as in its short one.
	if got := cidr.Split(&net.IPNet{IP: net.IPv4(10, 0, 0, 9), Mask: net.CIDRMask(24, 32)}); !slices.Equal(got, []string{"10.0.0.0/24"}) {
		t.Errorf("got %v", got)
	}
}

func TestReverse(t *testing.T) {
	got := cidr.Reverse([]string{"192.0.2.0/24", "example.org", "192.0.2.1", "10.0.0.0/33", "10.0.0.0/12"})
	if want := []string{"2.0.192.in-addr.arpa.", "10.in-addr.arpa."}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The parts of a network cover it, no more and no less.
func FuzzSplit(f *testing.F) {
	f.Add([]byte{10, 1, 0, 0}, byte(23))
	f.Add([]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, byte(31))
	f.Fuzz(func(t *testing.T, b []byte, ones byte) {
		addr, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		whole, err := addr.Prefix(int(ones))
		if err != nil {
			return
		}
		nets := cidr.Split(&net.IPNet{IP: b, Mask: net.CIDRMask(int(ones), 8*len(b))})
		if n := len(nets); n&(n-1) != 0 || n == 0 {
			t.Fatalf("%v: got %d parts", whole, n)
		}
		var last netip.Prefix
		for i, s := range nets {
			p := netip.MustParsePrefix(s)
			if p != p.Masked() || !whole.Contains(p.Addr()) || p.Bits()-whole.Bits() != bits.TrailingZeros(uint(len(nets))) {
				t.Fatalf("%v: got part %v of %d", whole, p, len(nets))
			}
			if i > 0 && p.Addr().Compare(last.Addr()) <= 0 {
				t.Fatalf("%v: %v stands after %v", whole, p, last)
			}
			last = p
		}
	})
}
