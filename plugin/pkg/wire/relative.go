package wire

import "encoding/binary"

// A zone keeps its data relative to its origin: names below the origin that may be
// compressed end in a place for a pointer to it, and each query's own name holds the origin to point to.
// So records are copied and patched, not packed.

// Owner is a record's owner: Prefix, and then a pointer. Without a pointer, Prefix is the whole name.
type Owner struct {
	Prefix  []byte
	Pointer uint16 // 0xC000 and an offset, or 0
	Len     int    // octets of the name without compression
}

// QuestionOwner is the owner of records that stand at the question's name.
func (w *Reply) QuestionOwner() Owner {
	return Owner{Pointer: 0xC000 | HeaderLen, Len: w.qend - HeaderLen - 4}
}

// OwnerAt is a name that stands at off of the message, in the case in which owners shall have it, as an owner; n is
// its length in full. It reports false if no pointer reaches so far.
func OwnerAt(off, n int) (o Owner, ok bool) {
	return Owner{Pointer: 0xC000 | uint16(off), Len: n}, off <= maxPointer
}

// At is the owner that a record has which was added before; o is how it was given then.
func (o Owner) At(r Rec) Owner {
	if o.Pointer != 0 && len(o.Prefix) == 0 || r.Off > maxPointer {
		return o
	}
	return Owner{Pointer: 0xC000 | r.Off, Len: o.Len}
}

// Pointer is a pointer to origin, which the question's name must end in, octet by octet; 0 if
// it does not, or if it differs in case.
func (w *Reply) Pointer(origin []byte) uint16 {
	name := w.qname()
	cut := len(name) - len(origin)
	if cut < 0 || string(name[cut:]) != string(origin) || !boundary(name, cut) {
		return 0
	}
	return 0xC000 | uint16(HeaderLen+cut)
}

// boundary reports whether a label of name begins at cut.
func boundary(name []byte, cut int) bool {
	i := 0
	for i < cut {
		i += int(name[i]) + 1
	}
	return i == cut
}

// Relative adds a record of class IN. data is its RDATA, in which pointer is put at each of the
// offsets that fix lists, two octets each, big-endian; plain is the length of the RDATA without compression.
// It reports false if the message would become longer than 65535 octets; records keep their places then, as further
// pointers of the caller's may lead there. Whole finds more room.
func (w *Reply) Relative(s Section, o Owner, typ uint16, ttl uint32, data, fix []byte, pointer uint16, plain int) bool {
	off := len(w.buf)
	w.buf = append(w.buf, o.Prefix...)
	if o.Pointer != 0 {
		w.buf = binary.BigEndian.AppendUint16(w.buf, o.Pointer)
	}
	w.buf = append(w.buf, byte(typ>>8), byte(typ), 0, ClassIN, byte(ttl>>24), byte(ttl>>16), byte(ttl>>8), byte(ttl), 0, 0)
	start := len(w.buf)
	w.buf = append(w.buf, data...)
	for ; len(fix) >= 2; fix = fix[2:] {
		binary.BigEndian.PutUint16(w.buf[start+int(binary.BigEndian.Uint16(fix)):], pointer)
	}
	if len(w.buf) > MaxMessage || w.full {
		return w.leaveOut(off, s)
	}
	return w.close(off, start-6, s, typ, o.Len+plain)
}

// Whole adds a record of class IN with its RDATA in full. The owner's pointer, if there is one, is one into the
// question.
func (w *Reply) Whole(s Section, o Owner, typ uint16, ttl uint32, rdata []byte) bool {
	var room [MaxName + 1]byte
	owner := append(room[:0], o.Prefix...)
	if o.Pointer != 0 {
		owner, _ = AppendNameAt(owner, w.buf, int(o.Pointer&maxPointer))
	}
	return w.Record(s, owner, typ, ClassIN, ttl, rdata)
}

// TargetOf adds a record of class IN whose RDATA is one name, which is written in full but for a suffix that
// the message already has.
func (w *Reply) TargetOf(s Section, o Owner, typ uint16, ttl uint32, target []byte) bool {
	off := len(w.buf)
	w.buf = append(w.buf, o.Prefix...)
	if o.Pointer != 0 {
		w.buf = binary.BigEndian.AppendUint16(w.buf, o.Pointer)
	}
	w.buf = append(w.buf, byte(typ>>8), byte(typ), 0, ClassIN, byte(ttl>>24), byte(ttl>>16), byte(ttl>>8), byte(ttl), 0, 0)
	start := len(w.buf)
	w.appendName(target, true, true)
	if len(w.buf) > MaxMessage || w.full {
		return w.leaveOut(off, s)
	}
	return w.close(off, start-6, s, typ, o.Len+len(target))
}
