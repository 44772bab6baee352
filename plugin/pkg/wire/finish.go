package wire

import "encoding/binary"

// End is what a reply needs of its query and client when it is ended.
type End struct {
	ID    uint16
	Flags uint16 // taken over into the header: RD, CD, the opcode's bits
	Limit int    // octets that the reply may have

	OPT      bool   // the client gets an OPT record
	Size     uint16 // our own UDP size, for the OPT record
	OPTFlags uint16 // its DO and Z bits
	Cookie   []byte // the data of its COOKIE option; nil for none
}

// Finish ends the message for the client of q, with size as our own UDP size. See End.
func (w *Reply) Finish(q *Query, size uint16) []byte { return w.End(endOf(q, size)) }

func endOf(q *Query, size uint16) End {
	return End{
		ID: q.id, Flags: q.flags & (FlagRD | FlagCD), Limit: q.Limit(),
		OPT: q.edns.Present, Size: size, OPTFlags: q.edns.Flags & 0xFF00, Cookie: q.cookieForReply(),
	}
}

// AppendFinished appends to b the message as Finish would return it, and does not end it: for those who tell what is about
// to be sent. It appends nothing if w holds no message.
func (w *Reply) AppendFinished(b []byte, q *Query, size uint16) []byte {
	if w.state != message {
		return b
	}
	e := endOf(q, size)
	opt := w.cutTo(&e)
	w.header(e.ID, e.Flags)
	from := len(b)
	b = append(b, w.buf...)
	if opt > 0 {
		b = w.appendOPT(b, &e)
		binary.BigEndian.PutUint16(b[from+10:], w.count[Additional]+1)
	}
	return b
}

// appendOPT appends the reply's OPT record.
func (w *Reply) appendOPT(b []byte, e *End) []byte {
	n := len(w.options)
	if e.Cookie != nil {
		n += optionHead + len(e.Cookie)
	}
	b = append(appendOPT(b, e.Size, w.extRcode, e.OPTFlags, n), w.options...)
	if e.Cookie != nil {
		b = AppendOption(b, OptionCookie, e.Cookie)
	}
	return b
}

// End ends the message: it is cut to its limit, and gets its OPT record and header.
// The result lies in the buffer that Reset was given, unless it did not fit there.
// It is nil if w holds no message.
func (w *Reply) End(e End) []byte {
	if w.state != message {
		return nil
	}
	opt := w.cutTo(&e)
	w.header(e.ID, e.Flags)
	if opt > 0 {
		w.buf = w.appendOPT(w.buf, &e)
		binary.BigEndian.PutUint16(w.buf[10:], w.count[Additional]+1)
	}
	return w.buf
}

// Cut makes the message as short as it has to be for the client of q, as Finish does: for those who want to
// know whether it gets TC. PlainLen does not change.
//
// Records are left out from the end. TC says that something was left out which the client
// needs: answers, authority, or the in-domain glue of a referral (RFC 2181 §9, RFC 9471);
// other additional records go silently, RRset by RRset.
func (w *Reply) Cut(q *Query) {
	if w.state == message {
		e := endOf(q, 0)
		w.cutTo(&e)
	}
}

// cutTo cuts the message to its limit and returns how many octets its OPT record takes.
func (w *Reply) cutTo(e *End) (opt int) {
	limit, least := e.Limit, 0
	if e.OPT {
		least = 11
		if e.Cookie != nil {
			w.options = withoutCookies(w.options)
			least += optionHead + len(e.Cookie)
		}
		opt = least + len(w.options)
	}
	if w.cut {
		w.flags |= FlagTC
	}
	if len(w.buf)+opt > limit {
		if opt > least && w.qend+opt > limit { // the options alone are too much
			w.options, opt = w.options[:0], least
		}
		if !w.tight {
			w.tighten()
		}
		if len(w.buf)+opt > limit {
			w.fit(limit - opt)
		}
	}
	return opt
}

// tighten compresses all names as far as they can be, as the message lane does; sources write faster and leave some as they are.
func (w *Reply) tighten() {
	w.tight = true
	plain := w.plain
	w.save()
	w.rewriteSaved()
	w.plain = plain
}

// header writes the message's header, with id and those flags that are the query's.
func (w *Reply) header(id, flags uint16) {
	binary.BigEndian.PutUint16(w.buf, id)
	binary.BigEndian.PutUint16(w.buf[2:], flags|FlagQR|w.flags)
	binary.BigEndian.PutUint16(w.buf[4:], 1)
	for s, n := range w.count {
		binary.BigEndian.PutUint16(w.buf[6+2*s:], n)
	}
}

// fit leaves out records until the message is at most limit octets long.
func (w *Reply) fit(limit int) {
	n := len(w.recs)
	for n > 0 && w.end(n-1) > limit {
		n--
	}
	for i := n; i < len(w.recs); i++ {
		if w.recs[i].Sec != Additional || w.needed(i) {
			w.flags |= FlagTC
			break
		}
	}
	// No part of an RRset in the additional section.
	for n > 0 && n < len(w.recs) && w.recs[n-1].Sec == Additional && w.sameRRset(n-1, n) {
		n--
	}
	if n == 0 {
		w.buf, w.recs, w.count = w.buf[:w.qend], w.recs[:0], [3]uint16{}
		return
	}
	if n < len(w.recs) {
		w.Truncate(n)
	}
}

// needed reports whether additional record i is an address in the domain of the
// delegation that this message is about.
func (w *Reply) needed(i int) bool {
	if w.count[Answer] > 0 || w.flags&FlagAA != 0 || w.recs[i].Type != TypeA && w.recs[i].Type != TypeAAAA {
		return false
	}
	for _, r := range w.Section(Authority) {
		if r.Type == TypeNS {
			var owner, cut [MaxName]byte
			o, okO := AppendNameAt(owner[:0], w.buf, int(w.recs[i].Off))
			c, okC := AppendNameAt(cut[:0], w.buf, int(r.Off))
			Lower(o, o)
			Lower(c, c)
			return okO && okC && Below(o, c)
		}
	}
	return false
}

func (w *Reply) sameRRset(i, j int) bool {
	if w.recs[i].Type != w.recs[j].Type || w.recs[i].Sec != w.recs[j].Sec {
		return false
	}
	var a, b [MaxName]byte
	x, okX := AppendNameAt(a[:0], w.buf, int(w.recs[i].Off))
	y, okY := AppendNameAt(b[:0], w.buf, int(w.recs[j].Off))
	return okX && okY && EqualFold(x, y)
}

// AppendNameAt appends to b the name at off of msg, uncompressed. It reports
// false, and returns b as it was, if there is no well-formed name: cut short, too
// long, or with a pointer that does not point backwards.
func AppendNameAt(b, msg []byte, off int) ([]byte, bool) {
	start, limit := len(b), off
	for off < len(msg) {
		n := int(msg[off])
		switch {
		case n == 0:
			b = append(b, 0)
			return b, len(b)-start <= MaxName
		case n&0xC0 == 0xC0:
			if off+1 >= len(msg) {
				return b[:start], false
			}
			off = int(binary.BigEndian.Uint16(msg[off:]) & maxPointer)
			if off >= limit { // backwards only, so that this ends
				return b[:start], false
			}
			limit = off
		case n > MaxLabel || off+1+n > len(msg) || len(b)-start+n+1 >= MaxName:
			return b[:start], false
		default:
			b = append(b, msg[off:off+1+n]...)
			off += n + 1
		}
	}
	return b[:start], false
}
