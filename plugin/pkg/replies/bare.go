package replies

import (
	"encoding/binary"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file is about errors that servers tell with a header alone, before they have looked at the question.

// BareError reports whether b is a reply of a header only, without a question, perhaps with an OPT record, that tells
// one of the errors of a server which did not understand the query or will not look at it: FORMERR, SERVFAIL, NOTIMP,
// REFUSED. It answers the query of its id. Any other reply without a question is none.
func BareError(b []byte) bool {
	if len(b) < wire.HeaderLen || b[2]&(wire.FlagQR>>8) == 0 {
		return false
	}
	switch binary.BigEndian.Uint16(b[2:]) & 0xF {
	case wire.FormErr, wire.ServFail, wire.NotImplemented, wire.Refused:
	default:
		return false
	}
	rest := b[wire.HeaderLen:]
	switch binary.BigEndian.Uint64(b[4:]) { // the counts
	case 0:
		return len(rest) == 0
	case 1:
		return len(rest) >= optFixed && rest[0] == 0 && binary.BigEndian.Uint16(rest[1:]) == wire.TypeOPT &&
			rest[5] == 0 /* extends the rcode */ && int(binary.BigEndian.Uint16(rest[9:])) == len(rest)-optFixed && ordinaryOptions(rest[optFixed:])
	}
	return false
}

// bareError is what Inspect finds out about b, which is a BareError.
func bareError(b []byte) (in Incoming) {
	in.ID = binary.BigEndian.Uint16(b)
	in.Rcode = int(b[3] & 0xF)
	if len(b) > wire.HeaderLen {
		in.OPT = wire.HeaderLen
	}
	return in
}

// Completed is b, which is Bare, with the question of query, and without TC: there is nothing more to be had over TCP.
func (in *Incoming) Completed(b, query []byte) []byte {
	question := query[wire.HeaderLen : wire.HeaderLen+wire.NameLen(query[wire.HeaderLen:])+4]
	whole := make([]byte, 0, len(b)+len(question))
	whole = append(append(append(whole, b[:wire.HeaderLen]...), question...), b[wire.HeaderLen:]...)
	whole[2] &^= wire.FlagTC >> 8
	binary.BigEndian.PutUint16(whole[4:], 1)
	in.QuestionEnd = wire.HeaderLen + len(question)
	if in.OPT > 0 {
		in.OPT += int32(len(question))
	}
	return whole
}
