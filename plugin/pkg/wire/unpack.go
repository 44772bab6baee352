package wire

import (
	"encoding/binary"
	"errors"

	"github.com/miekg/dns"
)

// request is what most queries are as messages, in one piece of memory.
type request struct {
	msg      dns.Msg
	question [1]dns.Question
	extra    [1]dns.RR
	opt      dns.OPT
}

// Unpacked is the message of a query, with memory that is used again.
type Unpacked struct{ request }

// Set returns q as a message, as it stands after all changes. It is good until the next Set.
func (u *Unpacked) Set(q *Query) (*dns.Msg, error) {
	if len(q.edns.Options) > 0 {
		return q.Msg()
	}
	var head [HeaderLen]byte
	binary.BigEndian.PutUint16(head[2:], q.flags)
	u.request = request{}
	u.msg.MsgHdr = Header(head[:])
	u.msg.Id = q.id
	u.question[0] = dns.Question{Name: Text(q.Name()), Qtype: q.qtype, Qclass: q.qclass}
	u.msg.Question = u.question[:]
	if q.edns.Present {
		u.opt.Hdr = dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT, Class: q.edns.Size, Ttl: uint32(q.edns.Flags)}
		u.extra[0] = &u.opt
		u.msg.Extra = u.extra[:]
	}
	return &u.msg, nil
}

// ErrDear is the error of a message that is not unpacked because that would cost far more than its length lets expect.
var ErrDear = errors.New("names are too long for a message of that length")

// UnpackQuery is UnpackMsg with as little work as most queries need.
func UnpackQuery(packet []byte) (*dns.Msg, error) {
	if m := unpackPlain(packet); m != nil {
		return m, nil
	}
	return UnpackMsg(packet)
}

// UnpackMsg is the message that packet holds, as UnpackInto reads it; what is not Affordable is ErrDear. Nothing of
// packet is kept. With an error, the message is as far as it was read.
func UnpackMsg(packet []byte) (*dns.Msg, error) {
	m := new(dns.Msg)
	if !Affordable(packet) {
		m.MsgHdr = Header(packet)
		return m, ErrDear
	}
	return m, UnpackInto(m, packet)
}

// unpackPlain reads a query that has one question, and perhaps an OPT record without options, and nothing else. It
// is nil for others.
func unpackPlain(packet []byte) *dns.Msg {
	if len(packet) < HeaderLen {
		return nil
	}
	count := func(i int) uint16 { return binary.BigEndian.Uint16(packet[4+2*i:]) }
	if count(0) != 1 || count(1)+count(2) != 0 || count(3) > 1 {
		return nil
	}
	n := NameLen(packet[HeaderLen:])
	rest := packet[HeaderLen+n:]
	if n == 0 || len(rest) != 4+int(count(3))*(1+10) {
		return nil
	}
	r := new(request)
	r.msg.Question, r.msg.MsgHdr = r.question[:], Header(packet)
	r.question[0] = dns.Question{
		Name:   Text(packet[HeaderLen : HeaderLen+n]),
		Qtype:  binary.BigEndian.Uint16(rest),
		Qclass: binary.BigEndian.Uint16(rest[2:]),
	}
	if count(3) == 0 {
		return &r.msg
	}
	opt := rest[4:]
	if opt[0] != 0 || binary.BigEndian.Uint16(opt[1:]) != dns.TypeOPT || opt[5] != 0 /* extends the rcode */ || binary.BigEndian.Uint16(opt[9:]) != 0 {
		return nil
	}
	r.opt.Hdr = dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT, Class: binary.BigEndian.Uint16(opt[3:]), Ttl: binary.BigEndian.Uint32(opt[5:])}
	r.extra[0] = &r.opt
	r.msg.Extra = r.extra[:]
	return &r.msg
}

// Header is the header of a packet, which is at least HeaderLen octets long.
func Header(packet []byte) dns.MsgHdr {
	flags := binary.BigEndian.Uint16(packet[2:])
	return dns.MsgHdr{
		Id:                 binary.BigEndian.Uint16(packet),
		Response:           flags&FlagQR != 0,
		Opcode:             int(flags>>11) & 0xF,
		Authoritative:      flags&FlagAA != 0,
		Truncated:          flags&FlagTC != 0,
		RecursionDesired:   flags&FlagRD != 0,
		RecursionAvailable: flags&FlagRA != 0,
		Zero:               flags&FlagZ != 0,
		AuthenticatedData:  flags&FlagAD != 0,
		CheckingDisabled:   flags&FlagCD != 0,
		Rcode:              int(flags & rcodeMask),
	}
}
