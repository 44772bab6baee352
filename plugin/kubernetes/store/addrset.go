package store

import "slices"

// addrSet finds the addresses of a slice. There may be a thousand, so that looking through them for each would cost
// a thousand times that.
type addrSet struct {
	hashes []uint64 // of the endpoints' addresses
	slots  []uint32 // by hash, the number of the first endpoint with an address and one; 0 for none
}

// count is how many endpoints s has, which may be nil.
func (a *addrSet) count(s *Slice) int {
	if s == nil {
		return 0
	}
	return len(s.ends)
}

// fill makes a the set of s, which may be nil.
func (a *addrSet) fill(s *Slice) {
	n := a.count(s)
	size := 8
	for size < 2*n {
		size *= 2
	}
	a.hashes = slices.Grow(a.hashes[:0], n)
	a.slots = slices.Grow(a.slots[:0], size)[:size]
	clear(a.slots)
	for i := range n {
		hash := hashAddr(s.Addr(i))
		a.hashes = append(a.hashes, hash)
		if slot := a.find(s, hash, s.ends[i].addr); a.slots[slot] == 0 {
			a.slots[slot] = uint32(i + 1)
		}
	}
}

// find is the slot that addr has, or would have.
func (a *addrSet) find(s *Slice, hash uint64, addr [16]byte) int {
	for slot := int(hash) & (len(a.slots) - 1); ; slot = (slot + 1) & (len(a.slots) - 1) {
		if i := a.slots[slot]; i == 0 || s.ends[i-1].addr == addr {
			return slot
		}
	}
}

// first reports whether endpoint i is the first of s with its address.
func (a *addrSet) first(s *Slice, i int) bool {
	return a.slots[a.find(s, a.hashes[i], s.ends[i].addr)] == uint32(i+1)
}

// holds reports whether s, which may be nil, has the address.
func (a *addrSet) holds(s *Slice, hash uint64, addr [16]byte) bool {
	return s != nil && a.slots[a.find(s, hash, addr)] != 0
}
