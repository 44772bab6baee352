package acl

import (
	"net/netip"
	"slices"
)

// sources is a set of addresses. It never changes once it is built.
type sources struct {
	all   bool
	spans []span // sorted, none touches another; all of IPv4 stand before those of IPv6
}

// span is all addresses from one to another of the same family.
type span struct{ from, to netip.Addr }

// newSources is the set of all addresses in networks. An IPv4 network may be written as one that is mapped into IPv6.
func newSources(networks []netip.Prefix) sources {
	spans := make([]span, len(networks))
	for i, n := range networks {
		spans[i] = spanOf(n)
	}
	return union(spans)
}

// union is the set of all addresses in spans, which it takes over.
func union(spans []span) sources {
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	merged := spans[:0]
	for _, s := range spans {
		if n := len(merged); n > 0 && s.from.Compare(merged[n-1].to) <= 0 {
			if s.to.Compare(merged[n-1].to) > 0 {
				merged[n-1].to = s.to
			}
			continue
		}
		merged = append(merged, s)
	}
	return sources{spans: merged}
}

func spanOf(n netip.Prefix) span {
	if a := n.Addr(); a.Is4In6() && n.Bits() >= 96 {
		n = netip.PrefixFrom(a.Unmap(), n.Bits()-96)
	}
	n = n.Masked()
	last := n.Addr().AsSlice()
	for i := n.Bits(); i < len(last)*8; i++ {
		last[i/8] |= 0x80 >> (i % 8)
	}
	to, _ := netip.AddrFromSlice(last)
	return span{n.Addr(), to}
}

// contain reports whether an address is in the set. A zone of it does not count, and IPv4 must not be mapped.
func (s *sources) contain(a netip.Addr) bool {
	if s.all {
		return true
	}
	a = a.WithZone("")
	low, high := 0, len(s.spans) // the last span that begins at or before a is before high
	for low < high {
		if mid := (low + high) / 2; s.spans[mid].from.Compare(a) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low > 0 && a.Compare(s.spans[low-1].to) <= 0
}
