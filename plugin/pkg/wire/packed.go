package wire

import "encoding/binary"

// Packed is a reply put away: its records in wire form with their layout and
// the header bits that belong to it. It holds no OPT record, id, or question, and
// fits each later query for the same name and type. A Packed never changes.
//
// It is one block of memory without pointers, so a collector does not look into it.
type Packed struct {
	blob  []byte // count layout entries of 7 octets, then the records
	count [3]uint16
	qend  uint16 // where the records began, as pointers in them count on it
	flags uint16
	plain uint32
}

const packedRec = 7

// Copy makes w hold what from holds. Options of w stay.
func (w *Reply) Copy(from *Reply) {
	w.buf = append(w.buf[:0], from.buf...)
	w.recs = append(w.recs[:0], from.recs...)
	w.options = append(w.options, from.options...)
	w.qend, w.count, w.plain, w.flags, w.extRcode = from.qend, from.count, from.plain, from.flags, from.extRcode
	w.state, w.cut, w.tight, w.writer, w.err = from.state, from.cut, from.tight, from.writer, from.err
	w.opt, w.optFlags = from.opt, from.optFlags
	w.names.reset()
}

// Pack puts away the message that w holds.
func (w *Reply) Pack() Packed {
	p, _ := w.PackWith(nil)
	return p
}

// PackWith is Pack with a copy of key in the same block of memory.
func (w *Reply) PackWith(key []byte) (p Packed, copied []byte) {
	body := w.buf[w.qend:]
	blob := make([]byte, 0, len(key)+len(w.recs)*packedRec+len(body))
	copied = append(blob, key...)
	copied, blob = copied[:len(key):len(key)], copied[len(key):]
	for _, r := range w.recs {
		blob = binary.LittleEndian.AppendUint16(blob, r.Off)
		blob = binary.LittleEndian.AppendUint16(blob, r.TTL)
		blob = binary.LittleEndian.AppendUint16(blob, r.Type)
		blob = append(blob, byte(r.Sec))
	}
	return Packed{
		blob:  append(blob, body...),
		count: w.count,
		qend:  uint16(w.qend),
		flags: w.flags &^ FlagTC,
		plain: uint32(w.plain),
	}, copied
}

// Size is the octets of memory that p needs beside its own struct.
func (p *Packed) Size() int { return len(p.blob) }

// Rcode is the return code of the reply that was put away.
func (p *Packed) Rcode() int { return int(p.flags & rcodeMask) }

// Count is the number of records of a section.
func (p *Packed) Count(s Section) int { return int(p.count[s]) }

// Load makes w the reply to q that p holds; q's name must be as long as that
// of the query it was made for, which a same name is. Owner names that were
// written as pointers to the question follow the question's case.
func (w *Reply) Load(p *Packed, q *Query) {
	w.Begin(q)
	if w.qend != int(p.qend) {
		panic("wire: a packed reply was loaded for another name")
	}
	n := int(p.count[0]) + int(p.count[1]) + int(p.count[2])
	for b := p.blob[:n*packedRec]; len(b) > 0; b = b[packedRec:] {
		w.recs = append(w.recs, Rec{
			Off:  binary.LittleEndian.Uint16(b),
			TTL:  binary.LittleEndian.Uint16(b[2:]),
			Type: binary.LittleEndian.Uint16(b[4:]),
			Sec:  Section(b[6]),
		})
	}
	w.buf = append(w.buf, p.blob[n*packedRec:]...)
	w.count, w.flags, w.plain = p.count, p.flags, int(p.plain)
}
