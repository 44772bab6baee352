package wire

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

// LoadMessage makes w the reply to q that msg is: the reply that came from elsewhere to a query for the same name and
// type. Records are copied as they stand, and so are AA, TC, RA, AD, the return code and EDNS options.
//
// msg must be one that can be unpacked; RDATA is not checked beyond its names. LoadMessage reports false, and w is
// to be begun anew, if msg cannot be taken over like that: with another question, an extended return code, or types
// that may hide names. Those go by way of SetMsg.
func (w *Reply) LoadMessage(q *Query, msg []byte) bool {
	w.Begin(q)
	if len(msg) < w.qend || binary.BigEndian.Uint16(msg[4:]) != 1 ||
		!EqualFold(msg[HeaderLen:w.qend-4], w.qname()) || string(msg[w.qend-4:w.qend]) != string(w.buf[w.qend-4:]) {
		return false
	}
	l := loader{w: w, msg: msg, off: w.qend, left: EffortOf(len(msg))}
	for s := range w.count {
		for n := binary.BigEndian.Uint16(msg[6+2*s:]); n > 0; n-- {
			if !l.record(Section(s)) {
				return false
			}
		}
	}
	end := l.off
	if w.opt > 0 {
		end -= w.opt
	}
	if l.off != len(msg) || len(w.buf) != w.qend {
		return false
	}
	w.buf = append(w.buf, msg[w.qend:end]...)
	w.plain += l.plain
	w.flags = binary.BigEndian.Uint16(msg[2:]) & (FlagAA | FlagTC | FlagRA | FlagAD | rcodeMask)
	if l.anew { // so that names point only where they may
		w.save()
		w.rewriteSaved()
	}
	return true
}

// OPT tells whether the message that was loaded had an OPT record, with its flags.
func (w *Reply) OPT() (flags uint16, ok bool) { return w.optFlags, w.opt > 0 }

// DropOPT forgets the OPT record of the message that was loaded, and all options.
func (w *Reply) DropOPT() {
	w.plain -= w.opt
	w.opt, w.optFlags, w.options = 0, 0, w.options[:0]
}

// CountOPT makes PlainLen count an OPT record with the options that there are now: a plugin that writes messages
// would have put it in.
func (w *Reply) CountOPT() {
	w.plain -= w.opt
	w.opt = 11 + len(w.options)
	w.plain += w.opt
}

// DropOption drops all options with a code.
func (w *Reply) DropOption(code uint16) {
	kept := w.options[:0]
	for b := w.options; len(b) >= 4; {
		end := min(4+int(binary.BigEndian.Uint16(b[2:])), len(b))
		if binary.BigEndian.Uint16(b) != code {
			kept = append(kept, b[:end]...)
		}
		b = b[end:]
	}
	if len(kept) < len(w.options) && w.opt > 0 {
		w.options = kept
		w.CountOPT()
	}
	w.options = kept
}

// Option is the data of the first option of the reply with a code, and whether there is one.
func (w *Reply) Option(code uint16) ([]byte, bool) {
	e := EDNS{Options: w.options}
	return e.Option(code)
}

// loader walks over the records of a message.
type loader struct {
	w     *Reply
	msg   []byte
	off   int
	plain int
	left  Effort
	known [8]target // by the low bits of their offsets
	anew  bool      // names point where they must not, or are to follow the question's case
}

// target is a name that others point to: all that it points to itself is known to be good.
type target struct {
	off   uint16
	cost  uint16 // of a name that is a pointer to it
	plain uint8  // its length in full
}

// record takes one record into the layout.
func (l *loader) record(s Section) bool {
	w, msg, from := l.w, l.msg, l.off
	owner, at := l.name(from, len(msg))
	if at == 0 || at+10 > len(msg) {
		return false
	}
	typ := binary.BigEndian.Uint16(msg[at:])
	data := at + 10
	end := data + int(binary.BigEndian.Uint16(msg[at+8:]))
	if end > len(msg) || w.opt > 0 { // nothing behind an OPT record: offsets would change
		return false
	}
	l.off = end
	if typ == TypeOPT {
		return l.opt(s, from, at, end)
	}
	if w.fold && owner == w.qend-HeaderLen-4 && string(msg[from:from+2]) != "\xC0\x0C" && l.asks(from) {
		l.anew = true
	}
	w.recs = append(w.recs, Rec{Off: uint16(from), TTL: uint16(at + 4), Type: typ, Sec: s})
	rdata, ok := l.rdata(typ, data, end)
	w.count[s]++
	l.plain += owner + 10 + rdata
	return ok
}

// asks reports whether the name at off is the question's.
func (l *loader) asks(off int) bool {
	var room [MaxName + 1]byte
	name, ok := AppendNameAt(room[:0], l.msg, off)
	return ok && EqualFold(name, l.w.qname())
}

// opt takes over an OPT record.
func (l *loader) opt(s Section, from, at, end int) bool {
	w, msg := l.w, l.msg
	if s != Additional || at != from+1 || binary.BigEndian.Uint16(msg[at+4:]) != 0 { // extended return code, version
		return false
	}
	w.options = append(w.options[:0], msg[at+10:end]...)
	if _, ok := walkOptions(w.options); !ok {
		return false
	}
	w.opt, w.optFlags = end-from, binary.BigEndian.Uint16(msg[at+6:])
	l.plain += w.opt
	return true
}

// walkOptions reports whether b is options that end where b ends, and how many.
func walkOptions(b []byte) (n int, ok bool) {
	for len(b) > 0 {
		if len(b) < 4 || len(b) < 4+int(binary.BigEndian.Uint16(b[2:])) {
			return n, false
		}
		b = b[4+int(binary.BigEndian.Uint16(b[2:])):]
		n++
	}
	return n, true
}

// rdata checks the RDATA from off to end and returns its length with all names in full.
func (l *loader) rdata(typ uint16, off, end int) (plain int, ok bool) {
	lead, names, _ := rdataNames(typ)
	if names == 0 {
		return end - off, opaque(typ, l.msg[off:end])
	}
	if plain = lead; off+lead >= end {
		return 0, false
	}
	for off += lead; names > 0; names-- {
		n, next := l.name(off, end)
		if next == 0 {
			return 0, false
		}
		plain += n
		off = next
	}
	return plain + end - off, true
}

// name returns the length in full of the name at off, and where it ends: 0 if it is none that ends before end.
func (l *loader) name(off, end int) (plain, next int) {
	if off+1 < end && l.msg[off] >= 0xC0 { // as most owners are written
		to := binary.BigEndian.Uint16(l.msg[off:]) & maxPointer
		if t := l.known[to%uint16(len(l.known))]; t.off == to && t.plain > 0 {
			if l.left -= Effort(t.cost); l.left < 0 {
				return 0, 0
			}
			return int(t.plain), off + 2
		}
	}
	before := l.left
	plain, next = l.left.Name(l.msg[:end], off)
	if next > off+1 && l.msg[next-2] >= 0xC0 && !l.follow(off, plain, uint16(before-l.left)) {
		return 0, 0
	}
	return plain, next
}

// follow looks at all that the name at off points to; plain is its length in full, cost what it cost. It reports false
// if there may be no name.
func (l *loader) follow(off, plain int, cost uint16) bool {
	for start, hops := off, 0; ; {
		n := int(l.msg[off])
		switch {
		case n == 0:
			return true
		case n <= MaxLabel:
			off += n + 1
			continue
		}
		to := binary.BigEndian.Uint16(l.msg[off:]) & maxPointer
		if hops++; hops == 1 { // the rest is the same for all names that point there
			t := &l.known[to%uint16(len(l.known))]
			if t.off == to && t.plain > 0 {
				return true
			}
			*t = target{to, cost, uint8(plain - off + start)}
		}
		if off = int(to); !l.holdsName(off) {
			return false
		}
	}
}

// holdsName reports whether there may be a name at an offset that a name points to, and notes if it lies in a record
// that may change its place.
func (l *loader) holdsName(off int) bool {
	if off < l.w.qend {
		return off < l.w.qend-4
	}
	recs := l.w.recs
	from, to := 0, len(recs) // the record is one of recs[from-1:to]
	for from < to {
		if mid := int(uint(from+to) / 2); int(recs[mid].Off) <= off {
			from = mid + 1
		} else {
			to = mid
		}
	}
	r := recs[from-1]
	l.anew = l.anew || Movable(r.Type)
	return off < int(r.TTL)-4 || off >= int(r.TTL)+6
}

// opaque reports whether RDATA of a type can be taken as octets: it has no names, or one in full.
func opaque(typ uint16, rdata []byte) bool {
	switch typ {
	case TypeA:
		return len(rdata) == 4
	case TypeAAAA:
		return len(rdata) == 16
	case TypeTXT, 43, 48, 50, 51, 52, 59, 60, 257: // DS DNSKEY NSEC3 NSEC3PARAM TLSA CDS CDNSKEY CAA
		return len(rdata) > 0
	case TypeRRSIG:
		return len(rdata) > 18 && NameLen(rdata[18:]) != 0
	case 47: // NSEC
		return NameLen(rdata) != 0
	case 64, 65: // SVCB HTTPS
		return len(rdata) > 2 && NameLen(rdata[2:]) != 0
	case dns.TypeAMTRELAY, dns.TypeNXT, dns.TypeISDN:
		return Misread(typ, rdata)
	}
	_, known := dns.TypeToRR[typ]
	return !known // nobody compresses what he does not know (RFC 3597 §4)
}
