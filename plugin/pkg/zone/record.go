package zone

import (
	"iter"
)

// Record is one record of a zone, of class IN.
type Record struct {
	Owner []byte // lower
	Type  uint16
	TTL   uint32
	RData []byte // uncompressed
}

// RecordsOf is the records of an RRset at owner. Each holds until the next one.
func (z *Zone) RecordsOf(owner []byte, s RRset) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		var buf []byte
		for r := s.Records(); len(r) > 0; r = r.Next() {
			buf = r.AppendRData(buf[:0], z.origin)
			if !yield(Record{owner, s.Type(), r.TTL(), buf}) {
				return
			}
		}
	}
}
