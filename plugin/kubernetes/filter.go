package kubernetes

import "encoding/binary"

// filter remembers values roughly, so that of many values each need not be compared with all before it: what it
// says is new is new; what it says was met before has to be looked for. With the 4,000 addresses
// that a message holds at most, it errs for one in sixteen on the average.
type filter [512]uint64

// meet notes the value with the hash h and reports whether it, or another one, was noted before.
func (f *filter) meet(h uint64) (before bool) {
	word, bit := h>>6%uint64(len(f)), uint64(1)<<(h&63)
	before = f[word]&bit != 0
	f[word] |= bit
	return before
}

// hashOf hashes a few octets. Who chooses addresses so that they collide gains nothing but a slower answer of his own service.
func hashOf(b []byte) uint64 {
	const k = 0x9e3779b97f4a7c15
	h := uint64(len(b))
	for ; len(b) >= 4; b = b[4:] {
		h = (h ^ uint64(binary.BigEndian.Uint32(b))) * k
		h ^= h >> 29
	}
	for _, c := range b {
		h = (h ^ uint64(c)) * k
	}
	return h ^ h>>32
}
