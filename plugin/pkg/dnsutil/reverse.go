package dnsutil

import (
	"net/netip"
	"strings"
)

// The reverse trees, as the names below them end.
const (
	IP4arpa = ".in-addr.arpa." // RFC 1035 §3.5
	IP6arpa = ".ip6.arpa."     // RFC 3596 §2.5
)

// IsReverse returns 1 if name is below in-addr.arpa., 2 if it is below ip6.arpa., and else 0. name ends in a dot.
func IsReverse(name string) int {
	if _, ok := cutSuffixFold(name, IP4arpa); ok {
		return 1
	}
	if _, ok := cutSuffixFold(name, IP6arpa); ok {
		return 2
	}
	return 0
}

// ExtractAddressFromReverse returns the address for which reverseName stands, as text: "192.0.2.1" for
// "1.2.0.192.in-addr.arpa.". It returns "" if the name, which ends in a dot, does not stand for a whole address. An
// IPv6 address comes in the form of RFC 5952, one that maps an IPv4 address as the latter.
func ExtractAddressFromReverse(reverseName string) string {
	if labels, ok := cutSuffixFold(reverseName, IP4arpa); ok {
		if addr, ok := addr4(labels); ok {
			return addr.String()
		}
	} else if labels, ok := cutSuffixFold(reverseName, IP6arpa); ok {
		if addr, ok := addr6(labels); ok {
			return addr.Unmap().String()
		}
	}
	return ""
}

// addr4 reads four decimal labels, the last octet of the address first.
func addr4(labels string) (netip.Addr, bool) {
	var a [4]byte
	for i := len(a) - 1; i >= 0; i-- {
		label, rest, more := strings.Cut(labels, ".")
		if more != (i > 0) {
			return netip.Addr{}, false
		}
		octet, ok := decimal(label)
		if !ok {
			return netip.Addr{}, false
		}
		a[i], labels = octet, rest
	}
	return netip.AddrFrom4(a), true
}

// decimal reads an octet without leading zeros.
func decimal(s string) (byte, bool) {
	if s == "" || len(s) > 3 || s[0] == '0' && s != "0" {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return byte(n), n <= 255
}

// addr6 reads 32 labels of one hexadecimal digit, the last nibble of the address first.
func addr6(labels string) (netip.Addr, bool) {
	var a [16]byte
	const nibbles = 2 * len(a)
	if len(labels) != 2*nibbles-1 {
		return netip.Addr{}, false
	}
	for i := range nibbles {
		digit, ok := hexadecimal(labels[2*i])
		if !ok || i < nibbles-1 && labels[2*i+1] != '.' {
			return netip.Addr{}, false
		}
		octet := len(a) - 1 - i/2
		a[octet] |= digit << (4 * (i % 2))
	}
	return netip.AddrFrom16(a), true
}

func hexadecimal(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// cutSuffixFold is strings.CutSuffix for an ASCII suffix in any case.
func cutSuffixFold(s, suffix string) (string, bool) {
	i := len(s) - len(suffix)
	if i < 0 || !strings.EqualFold(s[i:], suffix) {
		return s, false
	}
	return s[:i], true
}
