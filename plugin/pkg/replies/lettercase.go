package replies

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Flips is which octets of a question's name have another case than its owner wrote, a bit each. Who wants to forge
// a reply over UDP has to guess them beside port and id (draft-vixie-dnsext-dns0x20); the upstream repeats them.
//
// The way of a query is Mix, before it is sent; a comparison of the reply's name, octet by octet; UndoReply, for
// its owner to get its own letters; and Undo for the query, which may be sent again elsewhere.
type Flips [(wire.MaxName + 7) / 8]byte

// Mix gives the name of query, which is as its owner wrote it, letters of random case.
func (f *Flips) Mix(query []byte, random *rand.ChaCha8) {
	*f = Flips{}
	bits, left := uint64(0), 0
	for name := query[wire.HeaderLen:]; ; {
		at := len(query) - len(name)
		n := int(name[0])
		if n == 0 {
			return
		}
		for i := at + 1; i <= at+n; i++ {
			if c := query[i] | 0x20; c < 'a' || c > 'z' {
				continue
			}
			if left == 0 {
				bits, left = random.Uint64(), 64
			}
			if bits&1 != 0 {
				query[i] ^= 0x20
				f[(i-wire.HeaderLen)/8] |= 1 << ((i - wire.HeaderLen) % 8)
			}
			bits >>= 1
			left--
		}
		name = name[n+1:]
	}
}

// Undo gives b, which has the name, at its begin, its owner's letters back.
func (f *Flips) Undo(b []byte) {
	for i, bits := range f {
		for j := 0; bits != 0; j++ {
			if bits&1 != 0 {
				b[8*i+j] ^= 0x20
			}
			bits >>= 1
		}
	}
}

// UndoReply gives b, the reply to query, which is mixed, the letters back: in the question, and in all owners that
// are the same name in full.
func (f *Flips) UndoReply(b, query []byte) {
	name := query[wire.HeaderLen : wire.HeaderLen+wire.NameLen(query[wire.HeaderLen:])]
	off := wire.HeaderLen + len(name) + 4
	counts := binary.BigEndian.Uint64(b[4:])
	for range int(counts>>32&0xFFFF) + int(counts>>16&0xFFFF) + int(counts&0xFFFF) {
		at := skipName(b, off)
		if at == 0 || at+10 > len(b) {
			break
		}
		if at-off == len(name) && string(b[off:at]) == string(name) {
			f.Undo(b[off:])
		}
		off = at + 10 + int(binary.BigEndian.Uint16(b[at+8:]))
	}
	f.Undo(b[wire.HeaderLen:])
}
