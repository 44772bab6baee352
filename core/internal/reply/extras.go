package reply

import (
	"encoding/binary"

	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// padBlock is the octets that the length of a padded reply is a multiple of (RFC 8467 §4.1).
const padBlock = 468

var zeros [padBlock]byte

// mayRepeat is the options of a query that edns.Repeated may hold for.
const mayRepeat = wire.HasNSID | wire.HasExpire | wire.HasOther

// repeatOptions gives w the options of its query that are answered by themselves, as request.RepeatedOptions does for
// a message: only if plugins gave the reply no OPT record and no option.
func repeatOptions(w *wire.Reply, asked *wire.EDNS) {
	if _, has := w.OPT(); has || len(w.Options()) > 0 {
		return
	}
	for b := asked.Options; len(b) >= 4; {
		code, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if edns.Repeated(code) {
			w.AddOption(code, b[4:4+n])
		}
		b = b[4+n:]
	}
}

// addExtrasFor is addExtras for a query as a message.
func (f *Finisher) addExtrasFor(asked *dns.OPT, b []byte, tcp bool, limit int) []byte {
	var set wire.OptionSet
	for _, o := range asked.Option {
		switch o.Option() {
		case dns.EDNS0TCPKEEPALIVE:
			set |= wire.HasKeepalive
		case dns.EDNS0PADDING:
			set |= wire.HasPadding
		}
	}
	return f.addExtras(b, set, tcp, limit)
}

// addExtras adds to b, a packed reply of at most limit octets, what the listener adds by itself for a query with
// the options set: for how long the connection may be idle, and padding. The result may lie where b does. f may be
// nil.
func (f *Finisher) addExtras(b []byte, set wire.OptionSet, tcp bool, limit int) []byte {
	if f == nil {
		return b
	}
	keepalive, pad := f.Keepalive > 0 && tcp && set&wire.HasKeepalive != 0, f.Pad && set&wire.HasPadding != 0
	if !keepalive && !pad {
		return b
	}
	opt, ok := LastOPT(b)
	if !ok {
		return b
	}
	begin := len(b)
	if keepalive && len(b)+6 <= limit {
		b = wire.AppendOption(b, wire.OptionKeepalive, []byte{byte(f.Keepalive >> 8), byte(f.Keepalive)})
	}
	if pad && len(b)+4 <= limit {
		n := (len(b) + 4 + padBlock - 1) / padBlock * padBlock // length of all
		n = min(n, limit) - len(b) - 4
		b = wire.AppendOption(b, wire.OptionPadding, zeros[:n])
	}
	binary.BigEndian.PutUint16(b[opt+9:], binary.BigEndian.Uint16(b[opt+9:])+uint16(len(b)-begin))
	return b
}

// LastOPT is where the OPT record of a packed message begins. It reports false if the last record is none.
func LastOPT(b []byte) (int, bool) {
	if len(b) < wire.HeaderLen {
		return 0, false
	}
	count := func(i int) int { return int(binary.BigEndian.Uint16(b[4+2*i:])) }
	off := wire.HeaderLen
	for range count(0) {
		if off = SkipName(b, off); off+4 > len(b) {
			return 0, false
		}
		off += 4
	}
	last := -1
	for range count(1) + count(2) + count(3) {
		last = off
		if off = SkipName(b, off); off+10 > len(b) {
			return 0, false
		}
		off += 10 + int(binary.BigEndian.Uint16(b[off+8:]))
	}
	if last < 0 || off != len(b) || b[last] != 0 || binary.BigEndian.Uint16(b[last+1:]) != wire.TypeOPT {
		return 0, false
	}
	return last, true
}

// SkipName is where the name at off ends, beyond b if it does not end in b.
func SkipName(b []byte, off int) int {
	for off < len(b) {
		n := int(b[off])
		switch {
		case n == 0:
			return off + 1
		case n&0xC0 == 0xC0:
			return off + 2
		}
		off += 1 + n
	}
	return len(b) + 1
}
