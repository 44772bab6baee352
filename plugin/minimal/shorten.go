package minimal

import (
	"encoding/binary"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// former is a message as it was, with room for a name or RDATA in full.
type former struct {
	msg  []byte
	recs []wire.Rec
	full []byte
}

var formers = sync.Pool{New: func() any { return new(former) }}

// shorten leaves only the answer section of the reply that w holds to q, and no OPT record of an upstream. The message is begun
// anew, so that its length counts without what is left out; the records come to stand where they stood, so that pointers in them hold.
func shorten(w *wire.Reply, q *wire.Query) {
	w.DropOPT()
	if w.Count(wire.Answer) == len(w.Recs()) {
		return
	}
	f := formers.Get().(*former)
	defer formers.Put(f)
	n := w.Count(wire.Answer)
	f.msg = append(f.msg[:0], w.Bytes()...)
	f.recs = append(f.recs[:0], w.Recs()...) // there is one behind the answer, whose begin is the answer's end
	rcode, err, resolved := w.Rcode(), w.Err(), w.NonAuthoritative()
	var flags [len(headerBits)]bool
	for i, bit := range headerBits {
		flags[i] = w.Flag(bit)
	}
	w.Begin(q)
	w.SetRcode(rcode)
	w.SetErr(err)
	w.SetNonAuthoritative(resolved) // a resolver's reply stays one: hits of a cache above have no AA
	for i, bit := range headerBits {
		w.SetFlag(bit, flags[i])
	}
	for i := range n {
		f.copy(w, i)
	}
}

// mixed is mixedMsg for the reply that w holds.
func mixed(w *wire.Reply) bool {
	for _, r := range w.Section(wire.Answer) {
		if binary.BigEndian.Uint16(w.Bytes()[r.TTL-2:]) != wire.ClassIN {
			return true
		}
	}
	return false
}

// headerBits are those that a reply has of its own.
var headerBits = [...]uint16{wire.FlagAA, wire.FlagTC, wire.FlagRA, wire.FlagAD}

// copy adds record i, which is followed by another, to w.
func (f *former) copy(w *wire.Reply, i int) {
	r := f.recs[i]
	owner, ttl, rdata := f.msg[r.Off:r.TTL-4], binary.BigEndian.Uint32(f.msg[r.TTL:]), f.msg[r.TTL+6:f.recs[i+1].Off]
	f.full, _ = wire.AppendNameAt(f.full[:0], f.msg, int(r.Off))
	from := wire.Owner{Prefix: owner, Len: len(f.full)}
	w.Relative(wire.Answer, from, r.Type, ttl, rdata, nil, 0, f.plainLen(r.Type, int(r.TTL)+6, int(f.recs[i+1].Off)))
}

// plainLen is the length that the RDATA from off to end has when the names in it are written in full.
func (f *former) plainLen(typ uint16, off, end int) int {
	lead, names := compressed(typ)
	n := end - off
	for off += lead; names > 0 && off < end; names-- {
		start := off
		for off < end && f.msg[off] != 0 && f.msg[off] < 0xC0 {
			off += int(f.msg[off]) + 1
		}
		if off < end && f.msg[off] >= 0xC0 {
			off++
		}
		off++
		f.full, _ = wire.AppendNameAt(f.full[:0], f.msg, start)
		n += len(f.full) - (off - start)
	}
	return n
}

// compressed tells in which RDATA names may stand as pointers (RFC 3597 §4): behind how many octets, and how many names.
func compressed(typ uint16) (lead, names int) {
	switch typ {
	case wire.TypeNS, wire.TypeCNAME, wire.TypePTR, wire.TypeDNAME, 3, 4, 7, 8, 9: // MD MF MB MG MR
		return 0, 1
	case wire.TypeMX:
		return 2, 1
	case wire.TypeSRV:
		return 6, 1
	case wire.TypeSOA, 14: // MINFO
		return 0, 2
	}
	return 0, 0
}
