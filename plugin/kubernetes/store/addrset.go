package store

import "slices"

// addrSet finds the addresses of a slice. There may be a thousand, so that looking through them for each would cost
// a thousand times that, unless there are few to be found.
type addrSet struct {
	ends  []end
	few   bool     // they are looked through
	slots []uint32 // by hash, the number of the first endpoint with an address and one; 0 for none
}

// fewAddrs is how many addresses are looked for without a table.
const fewAddrs = 16

// alike is how many endpoints at the begin, and how many others at the end, have the same addresses in both.
func alike(a, b []end) (begin, tail int) {
	n := min(len(a), len(b))
	for begin < n && a[begin].addr == b[begin].addr {
		begin++
	}
	for tail < n-begin && a[len(a)-1-tail].addr == b[len(b)-1-tail].addr {
		tail++
	}
	return begin, tail
}

// fill makes a the set of endpoints, of whose addresses few are asked for.
func (a *addrSet) fill(ends []end, few bool) {
	if a.ends, a.few = ends, few; few {
		return
	}
	size := 8
	for size < 2*len(ends) {
		size *= 2
	}
	a.slots = slices.Grow(a.slots[:0], size)[:size]
	clear(a.slots)
	for i := range ends {
		if slot := a.find(ends[i].addr); a.slots[slot] == 0 {
			a.slots[slot] = uint32(i + 1)
		}
	}
}

// find is the slot that addr has, or would have.
func (a *addrSet) find(addr [16]byte) int {
	for slot := int(hash16(addr)) & (len(a.slots) - 1); ; slot = (slot + 1) & (len(a.slots) - 1) {
		if i := a.slots[slot]; i == 0 || a.ends[i-1].addr == addr {
			return slot
		}
	}
}

// at is the first endpoint with the address, -1 if there is none.
func (a *addrSet) at(addr [16]byte) int {
	if a.few {
		return slices.IndexFunc(a.ends, func(e end) bool { return e.addr == addr })
	}
	return int(a.slots[a.find(addr)]) - 1
}

// first reports whether endpoint i is the first one with its address.
func (a *addrSet) first(i int) bool { return a.at(a.ends[i].addr) == i }

// holds reports whether an endpoint has the address.
func (a *addrSet) holds(addr [16]byte) bool { return a.at(addr) >= 0 }
