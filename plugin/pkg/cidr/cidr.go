// Package cidr turns networks into the zones of the reverse trees that cover them.
//
//	10.1.0.0/23 ──Split──▶ 10.1.0.0/24 10.1.1.0/24 ──Reverse──▶ 0.1.10.in-addr.arpa. 1.1.10.in-addr.arpa.
//
// The functions are pure. Start at Split.
package cidr

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Split cuts n into the networks of the next longer prefix that ends where a label of the reverse tree ends: after
// a multiple of 8 bits for IPv4 (RFC 1035 §3.5), of 4 bits for IPv6 (RFC 3596 §2.5). They come in ascending
// order, in the form "192.0.2.0/24"; there are at most 128 for IPv4 and 8 for IPv6. Host bits of n are
// ignored. The result is nil if n is nil or its mask is not a prefix.
func Split(n *net.IPNet) []string {
	prefix, ok := prefixOf(n)
	if !ok {
		return nil
	}
	step := labelBits(prefix.Addr())
	bits := (prefix.Bits() + step - 1) / step * step

	nets := make([]string, 1<<(bits-prefix.Bits()))
	addr := prefix.Masked().Addr().AsSlice()
	for i := range nets {
		if i > 0 { // the bits that count up are within one label, so nothing is carried
			addr[(bits-1)/8] += 1 << (7 - (bits-1)%8)
		}
		a, _ := netip.AddrFromSlice(addr)
		nets[i] = netip.PrefixFrom(a, bits).String()
	}
	return nets
}

// Reverse returns, for each of nets in order, the zone that holds the reverse names of its addresses, fully
// qualified and in lower case: "2.0.192.in-addr.arpa." for "192.0.2.0/24". A prefix that ends within a label
// gives the zone above it; Split first. What is no network is left out.
func Reverse(nets []string) []string {
	zones := make([]string, 0, len(nets))
	for _, text := range nets {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			zones = append(zones, reverse(prefix))
		}
	}
	return zones
}

// reverse writes the labels of prefix, the last one first.
func reverse(prefix netip.Prefix) string {
	const hex = "0123456789abcdef"
	addr := prefix.Addr()
	octets := addr.AsSlice()
	var b strings.Builder
	for i := prefix.Bits()/labelBits(addr) - 1; i >= 0; i-- {
		switch {
		case addr.Is4():
			b.WriteString(strconv.Itoa(int(octets[i])))
		case i%2 == 0:
			b.WriteByte(hex[octets[i/2]>>4])
		default:
			b.WriteByte(hex[octets[i/2]&0xf])
		}
		b.WriteByte('.')
	}
	if addr.Is4() {
		b.WriteString("in-addr.arpa.")
	} else {
		b.WriteString("ip6.arpa.")
	}
	return b.String()
}

// labelBits is the number of bits that one label stands for.
func labelBits(a netip.Addr) int {
	if a.Is4() {
		return 8
	}
	return 4
}

// prefixOf returns n, whose family the length of the mask decides.
func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	ones, size := n.Mask.Size()
	ip := n.IP.To16()
	if size == 8*net.IPv4len {
		ip = n.IP.To4()
	}
	addr, ok := netip.AddrFromSlice(ip)
	return netip.PrefixFrom(addr, ones), ok && size > 0
}
