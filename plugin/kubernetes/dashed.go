package kubernetes

import (
	"bytes"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Addresses in labels have dashes in place of dots and colons: 10-0-0-1, 2001-db8--1.

// maxDashed is the length of the longest address with dashes: that of IPv6 with all its digits.
const maxDashed = 40

// appendDashed appends an address as a label's text. As a label must not end in a dash, an address that ends in "::" gets a zero.
func appendDashed(b []byte, a netip.Addr) []byte {
	at := len(b)
	b = a.AppendTo(b)
	for i := range b[at:] {
		if c := &b[at+i]; *c == '.' || *c == ':' {
			*c = '-'
		}
	}
	if b[len(b)-1] == '-' {
		b = append(b, '0')
	}
	return b
}

// dashedAddr reads an address from a lower label: three dashes and no two of them side by side make an IPv4
// address, all else is IPv6. One that maps an IPv4 address is that. The label does not escape to the heap,
// as it would with netip.ParseAddr.
func dashedAddr(label []byte) (netip.Addr, bool) {
	if bytes.Count(label, dash) == 3 && !bytes.Contains(label, gap) {
		return dashed4(label)
	}
	return dashed6(label)
}

var dash, gap = []byte("-"), []byte("--")

// dashed4 reads four decimal octets.
func dashed4(label []byte) (netip.Addr, bool) {
	var a [4]byte
	for i := range a {
		word, rest, _ := bytes.Cut(label, dash)
		octet, ok := wire.ParseOctet(word)
		if !ok {
			return netip.Addr{}, false
		}
		a[i], label = octet, rest
	}
	return netip.AddrFrom4(a), true
}

// dashed6 reads eight hexadecimal groups of up to four digits, of which two dashes stand for one zero or more (RFC 4291 §2.2).
func dashed6(label []byte) (netip.Addr, bool) {
	before, after, short := bytes.Cut(label, gap)
	var a, tail [16]byte
	n, ok := groups(&a, before)
	if !short {
		return netip.AddrFrom16(a).Unmap(), ok && n == len(a)
	}
	m, ok2 := groups(&tail, after)
	if !ok || !ok2 || n+m >= len(a) {
		return netip.Addr{}, false
	}
	copy(a[len(a)-m:], tail[:m])
	return netip.AddrFrom16(a).Unmap(), true
}

// groups reads hexadecimal groups into a, and returns how many octets they make. There may be none.
func groups(a *[16]byte, text []byte) (n int, ok bool) {
	for more := len(text) > 0; more; n += 2 {
		var word []byte
		word, text, more = bytes.Cut(text, dash)
		if len(word) == 0 || len(word) > 4 || n == len(a) {
			return 0, false
		}
		v := 0
		for _, c := range word {
			digit := bytes.IndexByte(hexDigits, c)
			if digit < 0 {
				return 0, false
			}
			v = v<<4 | digit
		}
		a[n], a[n+1] = byte(v>>8), byte(v)
	}
	return n, true
}

var hexDigits = []byte("0123456789abcdef")
