package udpsockets

import (
	"net/netip"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/hostaddrs/linktest"
)

// The address of a link is reached over UDP as soon as the link is made anew, with another number.
func TestSocketToALinkMadeAnew(t *testing.T) {
	linktest.Own(t)
	all, err := NewPortable()
	if err != nil {
		t.Fatal(err)
	}
	defer all.Stop()
	for _, number := range []string{"1003", "1004"} {
		linktest.Link(t, "udp0", number)
		s, err := all.Open(netip.Addr{}, netip.MustParseAddrPort("[fe80::1%udp0]:53"), nil, nil)
		if err != nil {
			t.Fatalf("number %s: %v", number, err)
		}
		s.Close()
		linktest.Remove(t, "udp0")
	}
}
