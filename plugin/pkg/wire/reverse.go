package wire

import (
	"net/netip"
	"slices"
	"strconv"
)

// The trees in which the names of addresses are.
var (
	inAddrArpa = MustName("in-addr.arpa.") // RFC 1035 §3.5
	ip6Arpa    = MustName("ip6.arpa.")     // RFC 3596 §2.5
)

// InReverse reports whether a lower name is in-addr.arpa or ip6.arpa, or below one of them.
func InReverse(lower []byte) bool { return Below(lower, inAddrArpa) || Below(lower, ip6Arpa) }

// ReverseName is the lower name of a valid address: 1.2.0.192.in-addr.arpa for 192.0.2.1 (RFC 1035 §3.5, RFC 3596
// §2.5). An IPv6 address that maps an IPv4 address is one of ip6.arpa.
func ReverseName(a netip.Addr) (name []byte) {
	if a.Is4() {
		octets := a.As4()
		for _, octet := range slices.Backward(octets[:]) {
			label := strconv.Itoa(int(octet))
			name = append(append(name, byte(len(label))), label...)
		}
		return append(name, inAddrArpa...)
	}
	octets := a.As16()
	for _, octet := range slices.Backward(octets[:]) {
		name = append(name, 1, hexDigits[octet&0xF], 1, hexDigits[octet>>4])
	}
	return append(name, ip6Arpa...)
}

// ParseReverse reads a lower reverse name as the addresses that it stands for: one, or if the name is not whole, all
// that have names below it.
func ParseReverse(lower []byte) (netip.Prefix, bool) {
	switch {
	case Below(lower, inAddrArpa):
		return reverse4(lower[:len(lower)-len(inAddrArpa)])
	case Below(lower, ip6Arpa):
		return reverse6(lower[:len(lower)-len(ip6Arpa)])
	}
	return netip.Prefix{}, false
}

// reverse4 reads decimal labels, the last octet of the address first.
func reverse4(labels []byte) (netip.Prefix, bool) {
	var a [4]byte
	n := 0
	for ; len(labels) > 0; n++ {
		end := 1 + int(labels[0])
		octet, ok := ParseOctet(labels[1:end])
		if !ok || n == len(a) {
			return netip.Prefix{}, false
		}
		copy(a[1:], a[:n])
		a[0], labels = octet, labels[end:]
	}
	return netip.PrefixFrom(netip.AddrFrom4(a), 8*n), true
}

// ParseOctet reads a decimal octet without leading zeros, as in the text of an IPv4 address.
func ParseOctet(label []byte) (byte, bool) {
	if len(label) == 0 || len(label) > 3 || label[0] == '0' && len(label) > 1 {
		return 0, false
	}
	n := 0
	for _, c := range label {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return byte(n), n <= 255
}

const hexDigits = "0123456789abcdef"

// reverse6 reads labels of one hexadecimal digit, the last one of the address first.
func reverse6(labels []byte) (netip.Prefix, bool) {
	var a [16]byte
	n := len(labels) / 2
	if len(labels)%2 != 0 || n > 2*len(a) {
		return netip.Prefix{}, false
	}
	for i := range n {
		digit, ok := hexadecimal(labels[2*i+1])
		if labels[2*i] != 1 || !ok {
			return netip.Prefix{}, false
		}
		at := n - 1 - i
		a[at/2] |= digit << (4 - 4*(at%2))
	}
	return netip.PrefixFrom(netip.AddrFrom16(a), 4*n), true
}

// hexadecimal reads a lower digit.
func hexadecimal(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}
