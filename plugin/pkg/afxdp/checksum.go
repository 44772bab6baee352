package afxdp

import (
	"encoding/binary"
	"math/bits"
)

// sum is the sum of RFC 1071 over b, begun with from, folded into 16 bits and not inverted.
func sum(from uint32, b []byte) uint16 {
	s, carry := uint64(from), uint64(0)
	for len(b) >= 8 {
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b), carry)
		b = b[8:]
	}
	var rest [8]byte
	copy(rest[:], b)
	s, carry = bits.Add64(s, binary.BigEndian.Uint64(rest[:]), carry)
	s = s>>32 + s&0xffffffff + carry
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s&0xffff)
}
