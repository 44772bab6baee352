package proxy

import (
	"encoding/binary"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// HopByHop reports whether an option concerns two neighbours only: cookies (RFC 7873), the idle time of a
// connection (RFC 7828) and padding (RFC 7830). Who forwards neither passes them on nor hands them back.
func HopByHop(code uint16) bool {
	return code == wire.OptionCookie || code == wire.OptionKeepalive || code == wire.OptionPadding
}

const optFixed = 11 // octets of an OPT record before its options

// CutHopByHop cuts cookie, keepalive and padding out of the OPT record of a packed query, in place, and reports
// whether there was a cookie. Names behind the OPT record must not be compressed. A query without any comes back as
// it is.
func CutHopByHop(query []byte) (cut []byte, cookie bool) {
	return cutOptions(query, findOPT(query))
}

// WithoutHopByHop cuts cookie, keepalive and padding out of b, the reply that f is about, in place.
func (f *Facts) WithoutHopByHop(b []byte) []byte {
	opt := int(f.opt)
	switch {
	case opt == 0 || opt+optFixed > len(b):
		return b
	case opt+optFixed+optionsLen(b, opt) == len(b):
		b, _ = cutOptions(b, opt)
		return b
	case !hopByHopFrom(b, opt):
		return b
	}
	return repacked(b)
}

// hopByHopFrom reports whether an OPT record from off on has an option that is cut out.
func hopByHopFrom(b []byte, off int) bool {
	for off < len(b) {
		at := skipName(b, off)
		if at == 0 || at+10 > len(b) {
			return false
		}
		end := at + 10 + int(binary.BigEndian.Uint16(b[at+8:]))
		if end > len(b) {
			return false
		}
		if binary.BigEndian.Uint16(b[at:]) == wire.TypeOPT {
			for o := b[at+10 : end]; len(o) >= 4; o = o[min(len(o), 4+int(binary.BigEndian.Uint16(o[2:]))):] {
				if HopByHop(binary.BigEndian.Uint16(o)) {
					return true
				}
			}
		}
		off = end
	}
	return false
}

// repacked is WithoutHopByHop for a message that does not end with its OPT record. One that is signed is left as it is.
func repacked(b []byte) []byte {
	m := new(dns.Msg)
	if m.Unpack(b) != nil || m.IsTsig() != nil || m.IsEdns0() == nil {
		return b
	}
	opt := m.IsEdns0()
	kept := opt.Option[:0]
	for _, o := range opt.Option {
		if !HopByHop(o.Option()) {
			kept = append(kept, o)
		}
	}
	if len(kept) == len(opt.Option) {
		return b
	}
	opt.Option, m.Compress = kept, true
	m.Extra = append(slices.DeleteFunc(m.Extra, func(rr dns.RR) bool { return rr == opt }), opt)
	if p, err := m.Pack(); err == nil {
		return p
	}
	return b
}

// cutOptions cuts the options that are hop by hop out of the OPT record at opt, 0 for none.
func cutOptions(b []byte, opt int) (cut []byte, cookie bool) {
	if opt == 0 {
		return b, false
	}
	at := opt + optFixed
	to, end := at, at+optionsLen(b, opt)
	for end-at >= 4 {
		code, n := binary.BigEndian.Uint16(b[at:]), 4+int(binary.BigEndian.Uint16(b[at+2:]))
		if n > end-at {
			break
		}
		if HopByHop(code) {
			cookie = cookie || code == wire.OptionCookie
		} else {
			to += copy(b[to:], b[at:at+n])
		}
		at += n
	}
	if at == to {
		return b, false
	}
	to += copy(b[to:], b[at:end]) // what was not understood
	binary.BigEndian.PutUint16(b[opt+9:], uint16(to-opt-optFixed))
	return b[:to+copy(b[to:], b[end:])], cookie
}

// optionsLen is how many octets of options the OPT record at opt has.
func optionsLen(b []byte, opt int) int { return int(binary.BigEndian.Uint16(b[opt+9:])) }

// option is the data of the first option with a code of the OPT record at opt, which is whole; 0 is no record.
func option(b []byte, opt int, code uint16) (data []byte, ok bool) {
	if opt == 0 {
		return nil, false
	}
	e := wire.EDNS{Options: b[opt+optFixed : opt+optFixed+optionsLen(b, opt)]}
	return e.Option(code)
}

// appendWithOption appends query, with one more option in its OPT record at opt, to b.
func appendWithOption(b, query []byte, opt int, code uint16, data []byte) []byte {
	end := opt + optFixed + optionsLen(query, opt)
	start := len(b)
	b = append(slices.Grow(b, len(query)+4+len(data)), query[:end]...)
	b = binary.BigEndian.AppendUint16(b, code)
	b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	b = append(append(b, data...), query[end:]...)
	binary.BigEndian.PutUint16(b[start+opt+9:], uint16(end-opt-optFixed+4+len(data)))
	return b
}

// findOPT is where the first OPT record of a message with one question begins, 0 if there is none or something
// before it is odd.
func findOPT(b []byte) int {
	if len(b) < wire.HeaderLen {
		return 0
	}
	left := wire.EffortOf(len(b))
	off := behindName(b, wire.HeaderLen, &left)
	if off == 0 {
		return 0
	}
	opt := 0
	eachRecord(b, off+4, &left, func(off, at int, additional bool) bool {
		if additional && binary.BigEndian.Uint16(b[at:]) == wire.TypeOPT && at == off+1 {
			opt = off
		}
		return opt == 0
	})
	return opt
}

// eachRecord goes through the records of a message, from off where the first one begins, as long as they are whole and
// f returns true. It is told where one begins, where its owner ends, and whether it is of the additional section.
func eachRecord(b []byte, off int, left *wire.Effort, f func(off, at int, additional bool) bool) {
	counts := binary.BigEndian.Uint64(b[4:])
	main := int(counts>>32&0xFFFF) + int(counts>>16&0xFFFF)
	for i := range main + int(counts&0xFFFF) {
		at := behindName(b, off, left)
		if at == 0 || at+10 > len(b) {
			return
		}
		end := at + 10 + int(binary.BigEndian.Uint16(b[at+8:]))
		if end > len(b) || !f(off, at, i >= main) {
			return
		}
		off = end
	}
}

// skipName is the offset behind the name at off as it stands there, 0 if it is cut short.
func skipName(b []byte, off int) int {
	for off < len(b) {
		switch n := int(b[off]); {
		case n == 0:
			return off + 1
		case n <= wire.MaxLabel:
			off += n + 1
		case off+1 < len(b):
			return off + 2
		default:
			return 0
		}
	}
	return 0
}
