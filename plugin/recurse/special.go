package recurse

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// specials are zones whose names never leave (RFC 6303, 6761, 6762, 7686, 7793, 8375, 9462, 9476). They are
// answered here as empty: nobody outside can know them, and nobody is to know who asks for them.
type specials struct {
	zones     map[string]bool
	elsewhere map[string]bool // zones that are served from elsewhere, which may lie below those
	tops      map[string]bool // the last labels of zones, with the root's
}

// specialTTL is the TTL of what is answered for them, in seconds.
const specialTTL = 10800

// specialNames are the zones in presentation form.
func specialNames() []string {
	all := strings.Fields(`localhost. invalid. test. onion. alt. home.arpa. local. resolver.arpa.
		10.in-addr.arpa. 168.192.in-addr.arpa. 0.in-addr.arpa. 127.in-addr.arpa. 254.169.in-addr.arpa. 2.0.192.in-addr.arpa.
		100.51.198.in-addr.arpa. 113.0.203.in-addr.arpa. 255.255.255.255.in-addr.arpa. d.f.ip6.arpa. 8.e.f.ip6.arpa. 9.e.f.ip6.arpa.
		a.e.f.ip6.arpa. b.e.f.ip6.arpa. 8.b.d.0.1.0.0.2.ip6.arpa.`)
	for i := 16; i < 32; i++ {
		all = append(all, fmt.Sprintf("%d.172.in-addr.arpa.", i))
	}
	for i := 64; i < 128; i++ {
		all = append(all, fmt.Sprintf("%d.100.in-addr.arpa.", i))
	}
	zeros := strings.Repeat("0.", 31)
	return append(all, "0."+zeros+"ip6.arpa.", "1."+zeros+"ip6.arpa.")
}

// newSpecials is all of them but those that are at or below a zone in except, and of the others what such a zone leaves.
func newSpecials(except []string) specials {
	s := specials{zones: map[string]bool{}, elsewhere: map[string]bool{}, tops: map[string]bool{}}
	for _, text := range specialNames() {
		s.zones[rrset.MustName(text)] = true
	}
	for _, zone := range except {
		s.elsewhere[zone] = true
		for z := range s.zones {
			if rrset.Below(z, zone) {
				delete(s.zones, z)
			}
		}
	}
	for z := range s.zones {
		s.tops[string(top([]byte(z)))] = true
	}
	return s
}

// top is the last label of a name with the root's, or the root.
func top(name []byte) []byte {
	for len(name) > 1 {
		above := wire.Parent(name)
		if len(above) == 1 {
			break
		}
		name = above
	}
	return name
}

// zone is the zone that a lower-case name is in, empty if it is in none.
func (s *specials) zone(name []byte) string {
	if !s.tops[string(top(name))] {
		return ""
	}
	for {
		if s.zones[string(name)] {
			return string(name)
		}
		if len(name) <= 1 || s.elsewhere[string(name)] {
			return ""
		}
		name = wire.Parent(name)
	}
}

const localhost = "\x09localhost\x00"

// answer answers q if its name is in one of the zones: the apex has SOA and NS, localhost and the names below it are
// this host, all others do not exist. The DS records of a part that is served from elsewhere are theirs (RFC 4035 §3.1.4.1):
// there are none.
func (s *specials) answer(w *wire.Reply, q *wire.Query) bool {
	if len(s.zones) == 0 {
		return false
	}
	name := q.Lower()
	cut := q.Type() == rrset.TypeDS && s.elsewhere[string(name)]
	if cut {
		name = wire.Parent(name)
	}
	zone := s.zone(name)
	if zone == "" {
		return false
	}
	w.Begin(q)
	w.SetFlag(wire.FlagRA, true)
	w.SetWriter(pluginName)
	apex := len(q.Lower()) == len(zone)
	soa := wire.SOA{MName: []byte(localhost), RName: []byte("\x06nobody\x07invalid\x00"), Serial: 1, Refresh: 3600, Retry: 1200, Expire: 604800, Minimum: specialTTL}
	switch {
	case zone == localhost && q.Type() == wire.TypeA:
		w.Addr(wire.Answer, q.Name(), specialTTL, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	case zone == localhost && q.Type() == wire.TypeAAAA:
		w.Addr(wire.Answer, q.Name(), specialTTL, netip.IPv6Loopback())
	case apex && q.Type() == wire.TypeSOA:
		w.SOA(wire.Answer, q.Name(), specialTTL, &soa)
	case apex && q.Type() == wire.TypeNS:
		w.Target(wire.Answer, q.Name(), wire.TypeNS, specialTTL, []byte(localhost))
	default:
		if !apex && !cut && zone != localhost {
			w.SetRcode(wire.NXDomain)
		}
		w.SOA(wire.Authority, []byte(zone), specialTTL, &soa)
	}
	return true
}
