package replies

import (
	"encoding/binary"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// This file is for who hands messages on between a client and an upstream: what two neighbours agree upon is
// theirs. Options of one hop that came through would tell an upstream's cookie to clients, or have a client's
// padding counted twice.

// HopByHop reports whether an option concerns two neighbours only: cookies (RFC 7873), the idle time of a
// connection (RFC 7828) and padding (RFC 7830). Who forwards neither passes them on nor hands them back.
func HopByHop(code uint16) bool {
	return code == wire.OptionCookie || code == wire.OptionKeepalive || code == wire.OptionPadding
}

// CutHopByHop cuts cookie, keepalive and padding out of the OPT record of a packed query, in place, and reports
// whether there was a cookie. Names behind the OPT record must not be compressed. A query without any comes back as
// it is.
func CutHopByHop(query []byte) (cut []byte, cookie bool) {
	return cutOptions(query, FindOPT(query))
}

// WithoutHopByHop cuts cookie, keepalive and padding out of b, the reply that f is about, in place.
func (f *Facts) WithoutHopByHop(b []byte) []byte {
	opt := int(f.OPT)
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
