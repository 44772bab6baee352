package wire

import (
	"encoding/binary"
	"net/netip"
)

// Movable reports whether records of a type may change places in their section:
// then no pointer may lead into them, but in a message that was cut to its limit, or is long (see Anchors).
func Movable(t uint16) bool { return t == TypeA || t == TypeAAAA || t == TypeMX }

// longMessage is the length from which on pointers lead into records that are Movable, too: well before the last octet
// that a pointer reaches.
const longMessage = 8 << 10

// Anchors reports whether names that come later may point into a record of a type that is added now. Where addresses
// make a message long, it has to be so, or owners written in full would leave no room for all of them; to put such
// a message into another order then costs that it is written anew.
func (w *Reply) Anchors(typ uint16) bool {
	if !Movable(typ) || w.tight {
		return true
	}
	w.anchored = w.anchored || len(w.buf) > longMessage
	return w.anchored
}

// open writes a record up to its RDLENGTH, which close fills in.
func (w *Reply) open(s Section, owner []byte, typ, class uint16, ttl uint32) (off int) {
	off = len(w.buf)
	if q := w.qname(); string(owner) == string(q) || w.fold && EqualFold(owner, q) {
		w.buf = append(w.buf, 0xC0, HeaderLen)
	} else {
		w.appendName(owner, true, w.Anchors(typ))
	}
	w.buf = append(w.buf, byte(typ>>8), byte(typ), byte(class>>8), byte(class),
		byte(ttl>>24), byte(ttl>>16), byte(ttl>>8), byte(ttl), 0, 0)
	return off
}

// close ends the record that open began at off; plain is the length of owner and RDATA
// without compression.
func (w *Reply) close(off, ttlAt int, s Section, typ uint16, plain int) bool {
	if len(w.buf) > MaxMessage || w.full {
		if !w.full && w.names.large == nil && !w.anew && !w.datagram {
			return w.shorten(off, ttlAt, s, typ)
		}
		return w.leaveOut(off, s)
	}
	binary.BigEndian.PutUint16(w.buf[ttlAt+4:], uint16(len(w.buf)-ttlAt-6))
	w.recs = append(w.recs, Rec{Off: uint16(off), TTL: uint16(ttlAt), Type: typ, Sec: s})
	w.count[s]++
	w.plain += plain + 10
	if w.vouched != nil {
		w.vouched = nil
	}
	return true
}

// leaveOut takes back the record that begins at off: the message would be too long. So it is with all that follow, for
// records go from the end, as where a client takes less.
func (w *Reply) leaveOut(off int, s Section) bool {
	w.buf, w.full = w.buf[:off], true
	if s != Additional || w.count[Answer] == 0 { // of additional records the glue of a referral is needed
		w.flags |= FlagTC
	}
	return false
}

// shorten writes all names anew, as short as they can be, and then the record that begins at off once more. Sources
// write faster and leave some names as they are, so that a message of 64 KiB may have room yet.
func (w *Reply) shorten(off, ttlAt int, s Section, typ uint16) bool {
	var room [MaxName + 1]byte
	owner, _ := AppendNameAt(room[:0], w.buf, off)
	class, ttl := binary.BigEndian.Uint16(w.buf[ttlAt-2:]), binary.BigEndian.Uint32(w.buf[ttlAt:])
	rdata := appendRData(nil, w.buf, typ, ttlAt+6, len(w.buf))
	w.buf = w.buf[:off]
	w.save()
	w.tight = true
	w.names.enlarge()
	w.writeSaved(nil, MaxMessage)
	return w.Record(s, owner, typ, class, ttl, rdata)
}

// Full reports whether a record was left out since Begin, as the message would have become too long. No other is added
// then, unless records are taken away.
func (w *Reply) Full() bool { return w.full }

// Addr adds an A or an AAAA record, as the address is.
func (w *Reply) Addr(s Section, owner []byte, ttl uint32, a netip.Addr) bool {
	if a.Is4() {
		off := w.open(s, owner, TypeA, ClassIN, ttl)
		at := len(w.buf) - 6
		b := a.As4()
		w.buf = append(w.buf, b[:]...)
		return w.close(off, at, s, TypeA, len(owner)+4)
	}
	off := w.open(s, owner, TypeAAAA, ClassIN, ttl)
	at := len(w.buf) - 6
	b := a.As16()
	w.buf = append(w.buf, b[:]...)
	return w.close(off, at, s, TypeAAAA, len(owner)+16)
}

// Target adds a record whose RDATA is one name: NS, CNAME, PTR or DNAME.
func (w *Reply) Target(s Section, owner []byte, typ uint16, ttl uint32, target []byte) bool {
	off := w.open(s, owner, typ, ClassIN, ttl)
	at := len(w.buf) - 6
	w.appendName(target, typ != TypeDNAME, true)
	return w.close(off, at, s, typ, len(owner)+len(target))
}

// SRV adds an SRV record (RFC 2782); its target is never compressed.
func (w *Reply) SRV(s Section, owner []byte, ttl uint32, priority, weight, port uint16, target []byte) bool {
	off := w.open(s, owner, TypeSRV, ClassIN, ttl)
	at := len(w.buf) - 6
	w.buf = append(w.buf, byte(priority>>8), byte(priority), byte(weight>>8), byte(weight), byte(port>>8), byte(port))
	w.appendName(target, false, true)
	return w.close(off, at, s, TypeSRV, len(owner)+6+len(target))
}

// SOA is the RDATA of an SOA record (RFC 1035 §3.3.13); times in seconds.
type SOA struct {
	MName, RName                            []byte
	Serial, Refresh, Retry, Expire, Minimum uint32
}

// SOA adds an SOA record.
func (w *Reply) SOA(s Section, owner []byte, ttl uint32, soa *SOA) bool {
	off := w.open(s, owner, TypeSOA, ClassIN, ttl)
	at := len(w.buf) - 6
	w.appendName(soa.MName, true, true)
	w.appendName(soa.RName, true, true)
	for _, v := range [...]uint32{soa.Serial, soa.Refresh, soa.Retry, soa.Expire, soa.Minimum} {
		w.buf = binary.BigEndian.AppendUint32(w.buf, v)
	}
	return w.close(off, at, s, TypeSOA, len(owner)+len(soa.MName)+len(soa.RName)+20)
}

// TXT adds a TXT record with text in strings of at most 255 octets.
func (w *Reply) TXT(s Section, owner []byte, class uint16, ttl uint32, text string) bool {
	off := w.open(s, owner, TypeTXT, class, ttl)
	at := len(w.buf) - 6
	for {
		part := text[:min(len(text), 255)]
		w.buf = append(w.buf, byte(len(part)))
		w.buf = append(w.buf, part...)
		if text = text[len(part):]; text == "" {
			break
		}
	}
	return w.close(off, at, s, TypeTXT, len(owner)+len(w.buf)-at-6)
}

// Record adds a record of any type and class with its RDATA in uncompressed wire
// form. Names in the RDATA of the types of RFC 1035 are compressed, others not (RFC 3597 §4).
func (w *Reply) Record(s Section, owner []byte, typ, class uint16, ttl uint32, rdata []byte) bool {
	off := w.open(s, owner, typ, class, ttl)
	at := len(w.buf) - 6
	lead, names, point := rdataNames(typ)
	rest := rdata
	if names > 0 && len(rest) > lead {
		w.buf = append(w.buf, rest[:lead]...)
		rest = rest[lead:]
		for ; names > 0; names-- {
			n := NameLen(rest)
			if n == 0 {
				break
			}
			w.appendName(rest[:n], point, w.Anchors(typ))
			rest = rest[n:]
		}
	}
	w.buf = append(w.buf, rest...)
	return w.close(off, at, s, typ, len(owner)+len(rdata))
}

// rdataNames tells where names stand in a type's RDATA: how many octets before
// them, how many names, and whether they may be compressed.
func rdataNames(typ uint16) (lead, names int, point bool) {
	switch typ {
	case TypeNS, TypeCNAME, TypePTR, 3, 4, 7, 8, 9: // MD MF MB MG MR
		return 0, 1, true
	case TypeMX:
		return 2, 1, true
	case TypeSOA, 14: // MINFO
		return 0, 2, true
	case TypeSRV:
		return 6, 1, false
	case TypeDNAME:
		return 0, 1, false
	}
	return 0, 0, false
}
