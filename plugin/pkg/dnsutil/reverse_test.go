package dnsutil_test

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
)

func TestExtractAddressFromReverse(t *testing.T) {
	for name, want := range map[string]string{
		"54.119.58.176.in-addr.arpa.":   "176.58.119.54",
		"1.2.0.192.IN-ADDR.arpa.":       "192.0.2.1",
		"255.255.255.255.in-addr.arpa.": "255.255.255.255",
		"0.0.0.0.in-addr.arpa.":         "0.0.0.0",
		"b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa.": "4321:0:1:2:3:4:567:89ab",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.B.D.0.1.0.0.2.Ip6.Arpa.": "2001:db8::1",
		"1.0.2.0.0.0.0.c.f.f.f.f.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.": "192.0.2.1",

		"":                                  "",
		".":                                 "",
		"in-addr.arpa.":                     "",
		"ip6.arpa.":                         "",
		"example.org.":                      "",
		"2.0.192.in-addr.arpa.":             "",
		"5.1.2.0.192.in-addr.arpa.":         "",
		"1.2.0.192.in-addr.arpa":            "",
		"256.2.0.192.in-addr.arpa.":         "",
		"01.2.0.192.in-addr.arpa.":          "",
		"1000.2.0.192.in-addr.arpa.":        "",
		"a.2.0.192.in-addr.arpa.":           "",
		"..2.0.in-addr.arpa.":               "",
		"1.2.0.192.in-addr.arpa.org.":       "",
		"1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.": "",
		"g.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.": "",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0-2.ip6.arpa.": "",
	} {
		if got := dnsutil.ExtractAddressFromReverse(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func FuzzExtractAddressFromReverse(f *testing.F) {
	f.Add([]byte{192, 0, 2, 1}, "")
	f.Add([]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, "1.2.3.4.in-addr.arpa.")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		// There and back again.
		if addr, ok := netip.AddrFromSlice(b); ok {
			reverse, err := dns.ReverseAddr(addr.String())
			if err != nil {
				t.Fatal(err)
			}
			if got := dnsutil.ExtractAddressFromReverse(reverse); got != addr.Unmap().String() {
				t.Errorf("%v is %s, which is %q", addr, reverse, got)
			}
		}
		// Whatever the name, the result is an address or nothing.
		if got := dnsutil.ExtractAddressFromReverse(name); got != "" {
			if _, err := netip.ParseAddr(got); err != nil || dnsutil.IsReverse(name) == 0 {
				t.Errorf("%q: got %q, reverse %d", name, got, dnsutil.IsReverse(name))
			}
		}
	})
}

func TestIsReverse(t *testing.T) {
	for name, want := range map[string]int{
		"1.2.0.192.in-addr.arpa.":   1,
		"10.In-Addr.ARPA.":          1,
		"8.b.d.0.1.0.0.2.ip6.arpa.": 2,
		"x.IP6.arpa.":               2,
		"in-addr.arpa.":             0,
		"ip6.arpa.":                 0,
		"xin-addr.arpa.":            0,
		"x.in-addr.arpa":            0,
		"example.org.":              0,
		"":                          0,
	} {
		if got := dnsutil.IsReverse(name); got != want {
			t.Errorf("%q: got %d, want %d", name, got, want)
		}
	}
}

func BenchmarkExtractAddressFromReverse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		dnsutil.ExtractAddressFromReverse("54.119.58.176.in-addr.arpa.")
	}
}
