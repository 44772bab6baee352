package response

import (
	"encoding/binary"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// TypifyWire is Typify for a reply in the making. do tells whether the reply will have the DO bit; w holds
// a message or a failure.
func TypifyWire(w *wire.Reply, q *wire.Query, do bool, t time.Time) Type {
	return TypifyReply(w, dns.OpcodeQuery, q.Type(), do, t)
}

// TypifyReply is TypifyWire for a message of any opcode and of type qtype.
func TypifyReply(w *wire.Reply, opcode int, qtype uint16, do bool, t time.Time) Type {
	switch {
	case opcode == dns.OpcodeUpdate:
		return Update
	case opcode == dns.OpcodeNotify, qtype == wire.TypeAXFR, qtype == wire.TypeIXFR:
		return Meta
	case w.Dropped():
		return OtherError
	case w.Holds() && do && Expired(w, t):
		return OtherError
	}
	answer := w.Holds() && w.Count(wire.Answer) > 0
	switch w.Rcode() {
	case wire.Success:
		switch {
		case answer:
			return NoError
		case hasTypeWire(w, wire.TypeSOA):
			return NoData
		case hasTypeWire(w, wire.TypeNS):
			return Delegation
		}
		return NoError
	case wire.NXDomain:
		if answer {
			return OtherError
		}
		return NameError
	case wire.ServFail, wire.NotImplemented:
		return ServerError
	}
	return OtherError
}

// hasTypeWire reports whether the authority section has records of a type.
func hasTypeWire(w *wire.Reply, typ uint16) bool {
	if !w.Holds() {
		return false
	}
	for _, r := range w.Section(wire.Authority) {
		if r.Type == typ {
			return true
		}
	}
	return false
}

// Expired reports whether w has a signature whose validity period (RFC 4034 §3.1.5) has not come or is over at t.
func Expired(w *wire.Reply, t time.Time) bool {
	now := uint32(t.Unix())
	for i, r := range w.Recs() {
		if r.Type != wire.TypeRRSIG {
			continue
		}
		data := w.RData(i)
		if len(data) < 18 {
			return true
		}
		expiration, inception := binary.BigEndian.Uint32(data[8:]), binary.BigEndian.Uint32(data[12:])
		if int32(expiration-now) < 0 || int32(now-inception) < 0 {
			return true
		}
	}
	return false
}
