package wire

import "encoding/binary"

// Reorder puts the records into the order given: order[i] is the place that the record which
// becomes record i has now. It is a permutation of the layout in which sections stay together.
//
// Records whose type is Movable only change places. If another would change its offset, all are
// written anew, as pointers may lead into its names.
func (w *Reply) Reorder(order []uint16) {
	first := 0
	for first < len(order) && int(order[first]) == first {
		first++
	}
	if first == len(order) {
		return
	}
	w.save()
	w.buf = w.buf[:w.recs[first].Off]
	for i := first; i < len(order); i++ {
		r := w.spare.recs[order[i]]
		off := uint16(len(w.buf))
		if off != r.Off && (!Movable(r.Type) || w.tight || w.anchored) {
			w.rewrite(order)
			return
		}
		w.buf = append(w.buf, w.spare.msg[r.Off:w.spare.end(int(order[i]))]...)
		r.TTL += off - r.Off
		r.Off = off
		w.recs[i] = r
	}
}

// Keep leaves out the records for which keep is false; i is the record's place in the layout before.
func (w *Reply) Keep(keep func(i int) bool) {
	var room [64]uint16
	order := room[:0]
	for i := range w.recs {
		if keep(i) {
			order = append(order, uint16(i))
		}
	}
	if len(order) < len(w.recs) {
		w.save()
		w.rewrite(order)
	}
}

// former is a message that is put into another order.
type former struct {
	msg   []byte
	recs  []Rec
	rdata []byte
}

// end is where record i ends.
func (f *former) end(i int) int {
	if i+1 < len(f.recs) {
		return int(f.recs[i+1].Off)
	}
	return len(f.msg)
}

// save makes w.spare what w is now.
func (w *Reply) save() {
	w.spare.msg = append(w.spare.msg[:0], w.buf...)
	w.spare.recs = append(w.spare.recs[:0], w.recs...)
}

// rewriteSaved makes w a message of the records of w.spare, with all names written anew.
func (w *Reply) rewriteSaved() { w.rewrite(nil) }

// rewrite makes w a message of the records of w.spare in an order, nil for their own. Where that is too long, names
// become as short as they can be.
func (w *Reply) rewrite(order []uint16) {
	flags, full, large := w.flags, w.full, w.names.large != nil
	w.names.reset()
	if large {
		w.names.enlarge()
	}
	if w.writeSaved(order, MaxMessage); w.full && !large && !w.datagram {
		w.flags, w.tight = flags, true
		w.names.enlarge()
		w.writeSaved(order, MaxMessage)
	}
	w.full = w.full || full && len(w.recs) == len(w.spare.recs)
}

// writeSaved makes w a message of the records of w.spare in an order, nil for their own, up to the first one that goes
// beyond limit. The caller has made the compressor empty.
func (w *Reply) writeSaved(order []uint16, limit int) {
	w.buf, w.recs, w.count, w.plain, w.anchored, w.full = w.buf[:w.qend], w.recs[:0], [3]uint16{}, w.qend+w.opt, false, false
	w.anew = true
	if order != nil {
		for _, at := range order {
			w.again(int(at))
		}
	} else {
		for i := 0; i < len(w.spare.recs) && len(w.buf) <= limit; i++ {
			w.again(i)
		}
	}
	w.anew = false
}

// again adds record i of w.spare.
func (w *Reply) again(i int) {
	msg, r := w.spare.msg, w.spare.recs[i]
	var room [MaxName + 1]byte
	owner, _ := AppendNameAt(room[:0], msg, int(r.Off))
	w.spare.rdata = appendRData(w.spare.rdata[:0], msg, r.Type, int(r.TTL)+6, w.spare.end(i))
	w.Record(r.Sec, owner, r.Type, binary.BigEndian.Uint16(msg[r.TTL-2:]), binary.BigEndian.Uint32(msg[r.TTL:]), w.spare.rdata)
}

// appendRData appends the RDATA that stands in msg from off to end, with its names in full.
func appendRData(b, msg []byte, typ uint16, off, end int) []byte {
	lead, names, _ := rdataNames(typ)
	b = append(b, msg[off:min(off+lead, end)]...)
	for off += lead; names > 0 && off < end; names-- {
		b, _ = AppendNameAt(b, msg, off)
		off += encodedLen(msg[off:end])
	}
	return append(b, msg[min(off, end):end]...)
}

// encodedLen is the length of the name at the begin of b as it stands there, pointers and all.
func encodedLen(b []byte) int {
	for i := 0; i < len(b); {
		switch n := int(b[i]); {
		case n == 0:
			return i + 1
		case n&0xC0 == 0xC0:
			return i + 2
		default:
			i += n + 1
		}
	}
	return len(b)
}
