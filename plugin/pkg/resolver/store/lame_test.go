package store

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// How much is known of servers that do not serve some zone is bounded for all of them together: whoever has many zones with
// many servers that refuse them takes no more memory than others.
func TestLameZonesAreBounded(t *testing.T) {
	const servers = 1000
	s := New(4<<20, servers)
	var all []*Server
	for i := range servers {
		v := s.Servers.Get(netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}), 53), func() any { return nil })
		for z := range 64 {
			v.SetLame(fmt.Sprint(z, ".", i, strings.Repeat("z", 200)), false, now+Second)
		}
		all = append(all, v)
	}
	zones, octets := 0, 0
	for _, v := range all {
		for _, zone := range v.Known(now).Lame {
			zones++
			octets += len(zone)
		}
	}
	if zones == 0 || octets > servers*lameOctets {
		t.Errorf("%d zones with %d octets are kept of %d servers", zones, octets, servers)
	}
}
