package zone

import (
	"bytes"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// same reports whether two records of a type, as stored made them, are one.
func (b *Builder) same(typ uint16, x, y []byte) bool {
	switch {
	case bytes.Equal(x, y):
		return true
	case !b.folds, lowered(typ), u16(x) != u16(y), len(x) == len(y) && !wire.EqualFold(x, y):
		return false // as nearly all are
	}
	return bytes.Equal(b.comparable(typ, x), b.comparable(typ, y))
}

// comparable is what the records that are one have in common.
func (b *Builder) comparable(typ uint16, stored []byte) []byte {
	if _, ok := formOf(typ, nil); !b.folds || !ok || lowered(typ) {
		return stored
	}
	return canonical(typ, Records(append(make([]byte, 4, 4+len(stored)), stored...)).AppendRData(nil, b.origin))
}
