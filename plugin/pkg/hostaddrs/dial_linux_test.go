package hostaddrs

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/hostaddrs/linktest"
)

// A link that is made anew has another number, by which its addresses are reached at once.
func TestDial(t *testing.T) {
	linktest.Own(t)
	for _, number := range []string{"1001", "1002"} {
		linktest.Link(t, "anew0", number)
		l, err := net.Listen("tcp6", "[::]:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addr := netip.AddrPortFrom(netip.MustParseAddr("fe80::1%anew0"), l.Addr().(*net.TCPAddr).AddrPort().Port()).String()
		if got, want := ByNumber(addr), strings.Replace(addr, "anew0", number, 1); got != want {
			t.Errorf("%s by number is %s, want %s", addr, got, want)
		}
		c, err := Dial(context.Background(), new(net.Dialer), "tcp", addr)
		if err != nil {
			t.Errorf("number %s: %v", number, err)
		} else {
			c.Close()
		}
		l.Close()
		if _, err := Dial(context.Background(), new(net.Dialer), "tcp", addr); err == nil || !strings.Contains(err.Error(), addr) {
			t.Errorf("got error %v, want one with %s", err, addr)
		}
		linktest.Remove(t, "anew0")
	}
}

// Other addresses are as they are.
func TestByNumber(t *testing.T) {
	for _, addr := range []string{"192.0.2.1:53", "[2001:db8::1]:53", "[fe80::1]:53", "[fe80::1%none0]:53", "dns.example.org:53", "[fe80::1%3]:53"} {
		if got := ByNumber(addr); got != addr {
			t.Errorf("%s by number is %s", addr, got)
		}
	}
}
