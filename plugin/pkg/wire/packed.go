package wire

import "encoding/binary"

// Packed is a reply put away: its records in wire form with their layout and
// the header bits that belong to it. It holds no OPT record, id, or question, and
// fits each later query for the same name and type. A Packed never changes.
//
// It is one block of memory without pointers, so a collector does not look into it.
type Packed struct {
	block []byte // the key, count layout entries of 7 octets, the records, and, if leaning, the question's name
	count [3]uint16
	qend  uint16 // where the records began, as pointers in them count on it
	flags uint16
	keyed uint8 // octets of the key
	names uint8 // leaning, bound
	plain uint32
}

// What is to be known of a Packed's names.
const (
	leaning = 1 << iota // others than owners that are the question's are written by pointers to it
	bound               // some point into records that are Movable
)

const packedRec = 7

// Pack puts away the message that w holds.
func (w *Reply) Pack() Packed { return w.PackWith(nil) }

// PackWith is Pack with a copy of key, of up to MaxName octets, in the same block of memory.
func (w *Reply) PackWith(key []byte) Packed {
	return w.PackIn(key, func(n int) []byte { return make([]byte, 0, n) })
}

// PackIn is PackWith in memory of the caller's: room is called once, and what it returns, with a capacity of n octets
// or more, is written to. That is the Packed's from then on.
func (w *Reply) PackIn(key []byte, room func(n int) []byte) Packed {
	body, names, name := w.buf[w.qend:], uint8(0), []byte(nil)
	if w.leans() {
		names, name = leaning, w.qname()
	}
	if w.tight || w.anchored {
		names |= bound
	}
	block := append(room(len(key) + len(w.recs)*packedRec + len(body) + len(name))[:0], key...)
	for _, r := range w.recs {
		block = binary.LittleEndian.AppendUint16(block, r.Off)
		block = binary.LittleEndian.AppendUint16(block, r.TTL)
		block = binary.LittleEndian.AppendUint16(block, r.Type)
		block = append(block, byte(r.Sec))
	}
	return Packed{
		block: append(append(block, body...), name...),
		count: w.count,
		qend:  uint16(w.qend),
		flags: w.flags &^ FlagTC,
		keyed: uint8(len(key)),
		names: names,
		plain: uint32(w.plain),
	}
}

// PackKey is a Packed with a copy of key, as PackWith has it, and no message.
func PackKey(key []byte) Packed {
	return Packed{block: append(make([]byte, 0, len(key)), key...), keyed: uint8(len(key))}
}

// Key is the key that p was packed with. It is only to be read.
func (p *Packed) Key() []byte { return p.block[:p.keyed:p.keyed] }

// leans reports whether a name that is not the owner of a record, or not all of one, is written by a pointer to the
// question.
func (w *Reply) leans() bool {
	for i, r := range w.recs {
		if at := int(r.Off); string(w.buf[at:at+2]) != "\xC0\x0C" && w.pointsBack(at) {
			return true
		}
		lead, names, _ := rdataNames(r.Type)
		end := w.end(i)
		for at := int(r.TTL) + 6 + lead; names > 0 && at < end; names-- {
			if w.pointsBack(at) {
				return true
			}
			at += encodedLen(w.buf[at:end])
		}
	}
	return false
}

// pointsBack reports whether the name at off ends in a pointer to the question.
func (w *Reply) pointsBack(off int) bool {
	last := off + encodedLen(w.buf[off:]) - 2
	return w.buf[last]&0xC0 == 0xC0 && int(binary.BigEndian.Uint16(w.buf[last:])&maxPointer) < w.qend
}

// Size is the octets of memory that p needs beside its own struct.
func (p *Packed) Size() int { return cap(p.block) }

// Rcode is the return code of the reply that was put away.
func (p *Packed) Rcode() int { return int(p.flags & rcodeMask) }

// Count is the number of records of a section.
func (p *Packed) Count(s Section) int { return int(p.count[s]) }

// Load makes w the reply to q that p holds; q's name must be as long as that
// of the query it was made for, which a same name is. Owners that are the question's
// name follow its case; all other names are written as they were.
func (w *Reply) Load(p *Packed, q *Query) {
	w.Begin(q)
	if w.qend != int(p.qend) {
		panic("wire: a packed reply was loaded for another name")
	}
	n := int(p.count[0]) + int(p.count[1]) + int(p.count[2])
	all := p.block[p.keyed:]
	for b := all[:n*packedRec]; len(b) > 0; b = b[packedRec:] {
		w.recs = append(w.recs, Rec{
			Off:  binary.LittleEndian.Uint16(b),
			TTL:  binary.LittleEndian.Uint16(b[2:]),
			Type: binary.LittleEndian.Uint16(b[4:]),
			Sec:  Section(b[6]),
		})
	}
	w.count, w.flags, w.plain, w.anchored = p.count, p.flags, int(p.plain), p.names&bound != 0
	body := all[n*packedRec:]
	if p.names&leaning == 0 {
		w.buf = append(w.buf, body...)
		return
	}
	end := len(body) - len(w.qname())
	w.buf = append(w.buf, body[:end]...)
	if name := body[end:]; string(name) != string(w.qname()) {
		w.loadCased(name)
	}
}

// loadCased writes the records anew, as those of a message whose question had another case.
func (w *Reply) loadCased(name []byte) {
	fold := w.fold
	w.fold = true // for owners that are the question's name
	var room [MaxName]byte
	own := append(room[:0], w.qname()...)
	copy(w.qname(), name)
	w.save()
	copy(w.qname(), own)
	w.rewriteSaved()
	w.fold = fold
}
