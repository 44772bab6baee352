package advice

import "net/netip"

// networkBits is how much of an IPv6 address tells one client from another.
const networkBits = 56

// ClientOf is whom limits and turns are for that asks from a: an IPv4 address, or the first one of an IPv6 /56. No
// address is none.
func ClientOf(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	p, _ := a.WithZone("").Prefix(networkBits) // an address of IPv6 has that many
	return p.Addr()
}
