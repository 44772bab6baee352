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

// AppendFinished appends to b the message as Finish would return it, and does not end it: for those who tell what
// is about to be sent. It appends nothing if w holds no message.
func (w *Reply) AppendFinished(b []byte, q *Query, size uint16) []byte {
	if w.state != message {
		return b
	}
	e := endOf(q, size)
	opt := w.cutTo(&e)
	w.headerFor(&e)
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

// headerFor is header for a client. Without an OPT record half of an extended return code would be another one.
func (w *Reply) headerFor(e *End) {
	w.header(e.ID, e.Flags)
	if w.extRcode != 0 && !e.OPT {
		w.buf[3] = w.buf[3]&^rcodeMask | ServFail
	}
}

// End ends the message: it is cut to its limit, and gets its OPT record and header.
// The result lies in the buffer that Reset was given, unless it did not fit there.
// It is nil if w holds no message.
func (w *Reply) End(e End) []byte {
	if w.state != message {
		return nil
	}
	opt := w.cutTo(&e)
	w.headerFor(&e)
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
// other additional records go silently, RRset by RRset. So it is over a stream, too: nothing else tells the client
// that an RRset lacks records, which it must not keep then (RFC 2181 §5.1).
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
	if len(w.buf)+opt > limit {
		if opt > least && w.qend+opt > limit { // the options alone are too much
			w.options, opt = w.options[:0], least
		}
		w.fit(limit - opt)
	}
	return opt
}

// Message is the message as it is built, with the header that a reply to q has, and without an OPT record. It is only
// to be read, and only until the next change; nil if w holds none.
func (w *Reply) Message(q *Query) []byte {
	if w.state != message {
		return nil
	}
	w.header(q.id, q.flags&(FlagRD|FlagCD))
	return w.buf
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

// fit makes the message at most limit octets long: it compresses all names as far as they can be, as the message
// lane does, for sources write faster and leave some as they are, and leaves out records from the end.
func (w *Reply) fit(limit int) {
	if !w.tight {
		w.tighten(limit)
		if len(w.buf) <= limit {
			return
		}
	} else {
		w.save()
	}
	n := len(w.recs)
	for n > 0 && w.end(n-1) > limit {
		n--
	}
	w.tellCut(n)
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

// tighten compresses the names of all records, up to the first one that goes beyond limit: what comes behind it is left
// out. w.spare is the message as it was.
func (w *Reply) tighten(limit int) {
	w.tight = true
	plain, full := w.plain, w.full
	w.save()
	if w.names.reset(); limit > smallLimit {
		w.names.enlarge()
	}
	w.writeSaved(nil, limit)
	w.plain, w.full = plain, w.full || full
}

// tellCut sets TC if one of the records of w.spare from n on is needed by the client.
func (w *Reply) tellCut(n int) {
	f := &w.spare
	var glue delegation
	if w.flags&FlagAA == 0 {
		glue.of(f)
	}
	for i := n; i < len(f.recs); i++ {
		if f.recs[i].Sec != Additional || glue.has(i) {
			w.flags |= FlagTC
			return
		}
	}
}

// delegation is the zone cut that a referral is about.
type delegation struct {
	f    *former
	room [MaxName + 1]byte
	cut  []byte // lower; nil if the message is no referral
}

// of finds the cut of the message f.
func (d *delegation) of(f *former) {
	d.f = f
	for _, r := range f.recs {
		switch {
		case r.Sec == Answer:
			return
		case r.Sec == Authority && r.Type == TypeNS:
			if cut, ok := AppendNameAt(d.room[:0], f.msg, int(r.Off)); ok {
				Lower(cut, cut)
				d.cut = cut
			}
			return
		}
	}
}

// has reports whether additional record i is an address in the domain of the delegation.
func (d *delegation) has(i int) bool {
	if d.cut == nil {
		return false
	}
	r := d.f.recs[i]
	if r.Type != TypeA && r.Type != TypeAAAA {
		return false
	}
	var room [MaxName + 1]byte
	owner, ok := AppendNameAt(room[:0], d.f.msg, int(r.Off))
	Lower(owner, owner)
	return ok && Below(owner, d.cut)
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
