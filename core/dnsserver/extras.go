package dnsserver

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// extras are what a listener adds by itself to the OPT records of replies, for clients that want it.
type extras struct {
	pad       bool   // encrypted: replies to padded queries are padded (RFC 7830 §4, RFC 8467 §4.1)
	keepalive uint16 // how long a connection may be idle, in units of 100 ms (RFC 7828); 0 where that is not told
}

// padBlock is the octets that the length of a padded reply is a multiple of (RFC 8467 §4.1).
const padBlock = 468

// extrasOf is the extras of a listener with the scheme trans.
func extrasOf(trans string, idle time.Duration) (e extras) {
	e.pad = trans != transport.DNS && trans != ""
	switch trans {
	case transport.DNS, transport.TLS, "":
		e.keepalive = uint16(min(math.MaxUint16, idle/(100*time.Millisecond)))
	}
	return e
}

// asked is which of the options that have extras a query holds.
func (e extras) asked(set wire.OptionSet, tcp bool) (keepalive, pad bool) {
	return e.keepalive > 0 && tcp && set&wire.HasKeepalive != 0, e.pad && set&wire.HasPadding != 0
}

// finish ends the message that w holds for q, with the extras of s.
func (s *Server) finish(w *wire.Reply, q *wire.Query, size uint16) []byte {
	b := w.Finish(q, size)
	set := q.EDNS().Set
	if set&(wire.HasKeepalive|wire.HasPadding) == 0 {
		return b
	}
	return s.extras.add(b, set, q.Proto == wire.TCP, q.Limit())
}

// addFor is add for a query as a message.
func (e extras) addFor(asked *dns.OPT, b []byte, tcp bool, limit int) []byte {
	var set wire.OptionSet
	for _, o := range asked.Option {
		switch o.Option() {
		case dns.EDNS0TCPKEEPALIVE:
			set |= wire.HasKeepalive
		case dns.EDNS0PADDING:
			set |= wire.HasPadding
		}
	}
	return e.add(b, set, tcp, limit)
}

// add adds to b, a packed reply of at most limit octets, what its query asks for with the options set. The result may lie where b does.
func (e extras) add(b []byte, set wire.OptionSet, tcp bool, limit int) []byte {
	keepalive, pad := e.asked(set, tcp)
	if !keepalive && !pad {
		return b
	}
	opt, ok := lastOPT(b)
	if !ok {
		return b
	}
	begin := len(b)
	if keepalive && len(b)+6 <= limit {
		b = wire.AppendOption(b, wire.OptionKeepalive, []byte{byte(e.keepalive >> 8), byte(e.keepalive)})
	}
	if pad && len(b)+4 <= limit {
		n := (len(b) + 4 + padBlock - 1) / padBlock * padBlock // length of all
		n = min(n, limit) - len(b) - 4
		b = wire.AppendOption(b, wire.OptionPadding, zeros[:n])
	}
	binary.BigEndian.PutUint16(b[opt+9:], binary.BigEndian.Uint16(b[opt+9:])+uint16(len(b)-begin))
	return b
}

var zeros [padBlock]byte

// lastOPT is where the OPT record of a packed message begins. It reports false if the last record is none.
func lastOPT(b []byte) (int, bool) {
	if len(b) < wire.HeaderLen {
		return 0, false
	}
	count := func(i int) int { return int(binary.BigEndian.Uint16(b[4+2*i:])) }
	off := wire.HeaderLen
	for range count(0) {
		if off = skipName(b, off); off+4 > len(b) {
			return 0, false
		}
		off += 4
	}
	last := -1
	for range count(1) + count(2) + count(3) {
		last = off
		if off = skipName(b, off); off+10 > len(b) {
			return 0, false
		}
		off += 10 + int(binary.BigEndian.Uint16(b[off+8:]))
	}
	if last < 0 || off != len(b) || b[last] != 0 || binary.BigEndian.Uint16(b[last+1:]) != wire.TypeOPT {
		return 0, false
	}
	return last, true
}

// skipName is where the name at off ends, beyond b if it does not end in b.
func skipName(b []byte, off int) int {
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
