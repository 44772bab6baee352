package wire_test

import (
	"net/netip"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

func TestReverseName(t *testing.T) {
	for _, text := range []string{"192.0.2.1", "0.0.0.0", "255.10.100.9", "2001:db8::a:f00", "::", "::ffff:192.0.2.1"} {
		a := netip.MustParseAddr(text)
		name := wire.ReverseName(a)
		want, err := dns.ReverseAddr(text)
		if a.Is4In6() { // which miekg/dns takes for IPv4
			want, err = "1.0.2.0.0.0.0.c.f.f.f.f.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.", nil
		}
		if got := wire.Text(name); err != nil || got != want {
			t.Errorf("%s: got %s, want %s (%v)", text, got, want, err)
		}
		if p, ok := wire.ParseReverse(name); !ok || p != netip.PrefixFrom(a, a.BitLen()) {
			t.Errorf("%s: read again as %v (%t)", text, p, ok)
		}
		if !wire.InReverse(name) {
			t.Errorf("%s: its name is not reverse", text)
		}
	}
}

func TestParseReverse(t *testing.T) {
	for name, want := range map[string]string{
		"2.0.192.in-addr.arpa.": "192.0.2.0/24", "in-addr.arpa.": "0.0.0.0/0", "8.b.d.0.1.0.0.2.ip6.arpa.": "2001:db8::/32", "d.f.ip6.arpa.": "fd00::/8",
		"f.ip6.arpa.": "f000::/4", "ip6.arpa.": "::/0",
		"256.in-addr.arpa.": "", "01.in-addr.arpa.": "", "1.2.3.4.5.in-addr.arpa.": "", "x.in-addr.arpa.": "", "10.ip6.arpa.": "", "g.ip6.arpa.": "", "in-addr.org.": "", "arpa.": "", ".": "",
	} {
		p, ok := wire.ParseReverse(wire.MustName(name))
		if got := p.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%s: got %s %t, want %q", name, got, ok, want)
		}
	}
}

func FuzzParseReverse(f *testing.F) {
	for _, s := range []string{"1.0.0.10.in-addr.arpa.", "10.in-addr.arpa.", "in-addr.arpa.", "256.in-addr.arpa.", "1.ip6.arpa.", "ip6.arpa.", "a.b.c.ip6.arpa.",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.", "2.1.0.0.10.in-addr.arpa.", "00.in-addr.arpa."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, err := wire.LowerName(text)
		if err != nil {
			return
		}
		p, ok := wire.ParseReverse(name)
		want := dnsutil.ExtractAddressFromReverse(wire.Text(name))
		switch {
		case ok && p.IsSingleIP():
			if got := p.Addr().Unmap().String(); got != want {
				t.Fatalf("%q: got %s, want %s", text, got, want)
			}
		case want != "":
			t.Fatalf("%q: got %v %t, want %s", text, p, ok, want)
		case ok && p != p.Masked():
			t.Fatalf("%q: got %v, which has bits of its own", text, p)
		}
	})
}
