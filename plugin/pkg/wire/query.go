package wire

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// Proto is the word that metrics and log use for a transport: "udp" or "tcp".
// Datagram transports with streams of their own (DoQ, DoH3) say udp, too.
type Proto uint8

const (
	UDP Proto = iota
	TCP
)

func (p Proto) String() string {
	if p == TCP {
		return "tcp"
	}
	return "udp"
}

// Peer tells who sent a query, by what transport, and when.
type Peer struct {
	Client  netip.AddrPort // IPv4 is never IPv4-mapped
	Local   netip.AddrPort // the address that the query was sent to
	Proto   Proto
	Limit   uint16    // largest reply of the transport: 65535 on streams; 0: the client's EDNS size decides
	Plain   bool      // it came over UDP or TCP, and nothing of it is known but what stands here
	Arrival time.Time // when the query was received; monotonic
}

// name is one name with what is needed of it all the time.
type name struct {
	n     int
	asked [MaxName + 1]byte
	lower [MaxName + 1]byte
	hash  uint64
}

func (n *name) set(b []byte) {
	n.n = copy(n.asked[:], b)
	Lower(n.lower[:n.n], n.asked[:n.n])
	n.hash = Hash(n.lower[:n.n])
}

// Query is a query's facts. The zero Query is ready for Parse or SetMsg.
//
// Plugins change a query on its way down with the Set methods, between Mark and
// Restore, so that who stands above sees what the client asked.
type Query struct {
	Peer

	packet  []byte
	id      uint16
	flags   uint16
	reqLen  int
	qtype   uint16
	qclass  uint16
	edns    EDNS
	changed bool

	name     *name // what is looked up now; points into names
	last     *name // what was set last; nil if nothing was
	depth    int   // names[:depth+1] are in use
	names    []*name
	first    name
	mayBlock bool
	loop     *eventloop.Loop
	awaited  eventloop.Exchange
	owns     bool // awaited was begun for it
	crowded  func() bool
	givesWay eventloop.Place
	deadline time.Time

	cookie      CookieState
	replyCookie [CookieLen]byte // for the reply, unless cookie is CookieNone
}

// Parse reads packet and reports whether it is eligible for the wire lane: a
// QUERY of class IN with one uncompressed question of an ordinary type and at most one
// OPT record, well-formed to its last octet. For each other packet, proper or
// not, it reports false and leaves it to the message lane to say what is wrong.
//
// packet is kept until the next Parse or SetMsg.
func (q *Query) Parse(packet []byte) bool {
	if len(packet) < HeaderLen+5 {
		return false
	}
	// One load for the counts: QD=1, AN=0, NS=0, AR=0 or 1.
	counts := binary.BigEndian.Uint64(packet[4:])
	flags := binary.BigEndian.Uint16(packet[2:])
	if counts&^1 != 1<<48 || flags&(FlagQR|opcodeMask) != 0 {
		return false
	}
	n := NameLen(packet[HeaderLen:])
	end := HeaderLen + n + 4
	if n == 0 || end > len(packet) {
		return false
	}
	q.qtype = binary.BigEndian.Uint16(packet[end-4:])
	q.qclass = binary.BigEndian.Uint16(packet[end-2:])
	if q.qclass != ClassIN || !ordinary(q.qtype) {
		return false
	}
	q.edns = EDNS{}
	if counts&1 == 0 {
		if end != len(packet) {
			return false
		}
	} else if !q.edns.parse(packet[end:]) {
		return false
	}
	q.packet = packet
	q.reqLen = len(packet)
	q.id = binary.BigEndian.Uint16(packet)
	q.flags = flags
	q.reset()
	q.name.set(packet[HeaderLen : HeaderLen+n])
	return true
}

func (q *Query) reset() {
	q.depth = 0
	q.name, q.last = &q.first, nil
	q.changed, q.mayBlock = false, false
	q.loop, q.awaited, q.owns = nil, nil, false
	q.deadline = time.Time{}
	q.cookie = CookieNone
}

// ordinary reports whether a type is one that sources look up: no meta type, and
// none of the private range's end.
func ordinary(t uint16) bool {
	return t != 0 && t != TypeOPT && (t < 249 || t > 255) && t <= 65279
}

// Packet is the message as it came, nil if the query was made with SetMsg.
func (q *Query) Packet() []byte { return q.packet }

// ID is the message id.
func (q *Query) ID() uint16 { return q.id }

// Len is the length of the query's message as it came, in octets.
func (q *Query) Len() int { return q.reqLen }

// Name is the name that is looked up, as the client wrote it (or a plugin set it).
func (q *Query) Name() []byte { return q.name.asked[:q.name.n] }

// Lower is Name in lower case. Neither may be changed or kept.
func (q *Query) Lower() []byte { return q.name.lower[:q.name.n] }

// Hash is Hash(q.Lower()).
func (q *Query) Hash() uint64 { return q.name.hash }

// Type is the type that is looked up.
func (q *Query) Type() uint16 { return q.qtype }

// Class is the class that is looked up.
func (q *Query) Class() uint16 { return q.qclass }

// RD, CD and AD are the query's header bits.
func (q *Query) RD() bool { return q.flags&FlagRD != 0 }
func (q *Query) CD() bool { return q.flags&FlagCD != 0 }
func (q *Query) AD() bool { return q.flags&FlagAD != 0 }

// Flags is the second word of the query's header.
func (q *Query) Flags() uint16 { return q.flags }

// EDNS is what the query's OPT record says; its zero value if there is none.
func (q *Query) EDNS() *EDNS { return &q.edns }

// DO reports whether DNSSEC records were asked for (RFC 3225).
func (q *Query) DO() bool { return q.edns.DO() }

// Limit is the length that a reply may have, in octets: what the transport
// carries, else the client's EDNS size, at least 512, and no more than a datagram has room for.
func (q *Query) Limit() int {
	if q.Peer.Limit != 0 {
		return int(q.Peer.Limit)
	}
	return min(max(MinUDP, int(q.edns.Size)), MaxUDP)
}

// Stream reports whether the reply may have any length that a message can have: it goes over a stream, and the client
// can ask in no other way for more.
func (q *Query) Stream() bool { return q.Peer.Proto == TCP || q.Peer.Limit == MaxMessage }

// MayBlock reports whether this run of the chain is on a goroutine that may wait.
func (q *Query) MayBlock() bool { return q.mayBlock }

// SetMayBlock says so.
func (q *Query) SetMayBlock(may bool) { q.mayBlock = may }

// Loop is the loop that the query is served on, nil if it may wait; SetLoop sets it.
func (q *Query) Loop() *eventloop.Loop     { return q.loop }
func (q *Query) SetLoop(l *eventloop.Loop) { q.loop = l }

// Deadline is the time until which the plugins below may work on the query,
// zero if none was set.
func (q *Query) Deadline() time.Time { return q.deadline }

// SetDeadline sets it.
func (q *Query) SetDeadline(t time.Time) { q.deadline = t }

// Changed reports whether a plugin changed what is looked up or the header or
// EDNS facts, so that Packet does not tell the query any more.
func (q *Query) Changed() bool { return q.changed }

// Mark is a query's state, for Restore.
type Mark struct {
	flags, qtype, qclass uint16
	edns                 EDNS
	changed              bool
	depth                int
	deadline             time.Time
}

// Mark notes q's state before a plugin changes it.
func (q *Query) Mark() Mark {
	return Mark{q.flags, q.qtype, q.qclass, q.edns, q.changed, q.depth, q.deadline}
}

// Restore puts back what Mark noted.
func (q *Query) Restore(m Mark) {
	q.flags, q.qtype, q.qclass, q.edns, q.changed, q.deadline = m.flags, m.qtype, m.qclass, m.edns, m.changed, m.deadline
	q.depth = m.depth
	if q.depth == 0 {
		q.name = &q.first
	} else {
		q.name = q.names[q.depth-1]
	}
}

// SetName changes the name that is looked up; name is copied. Only between Mark and Restore.
func (q *Query) SetName(b []byte) {
	if q.depth == len(q.names) {
		q.names = append(q.names, new(name)) // kept for later queries; rewriting below rewriting is rare
	}
	q.name = q.names[q.depth]
	q.depth++
	q.name.set(b)
	q.last = q.name
	q.changed = true
}

// LookedUp is the name that was looked up last, in lower case: that of the last SetName, be it taken back or
// not, or the one that was asked for. It is good until the next Parse or SetMsg.
func (q *Query) LookedUp() []byte {
	if q.last == nil {
		return q.first.lower[:q.first.n]
	}
	return q.last.lower[:q.last.n]
}

// SetType changes the type that is looked up. Only between Mark and Restore.
func (q *Query) SetType(t uint16) { q.qtype, q.changed = t, true }

// SetFlag sets or clears a header bit of the query. Only between Mark and Restore.
func (q *Query) SetFlag(bit uint16, on bool) {
	q.changed = true
	if q.flags &^= bit; on {
		q.flags |= bit
	}
}

// SetDO asks for DNSSEC records (RFC 3225), in an OPT record with a UDP size of at least size. Only between Mark and
// Restore.
func (q *Query) SetDO(size uint16) {
	q.edns.Present, q.changed = true, true
	q.edns.Size = max(q.edns.Size, size)
	q.edns.SetDO(true)
}

// SetSize changes the UDP size of the query's OPT record. Only between Mark and Restore.
func (q *Query) SetSize(size uint16) { q.edns.Size, q.changed = size, true }

// Append appends the query as it is now, with message id id, to b: header,
// question and OPT record. It is what goes upstream.
func (q *Query) Append(b []byte, id uint16) []byte {
	b = binary.BigEndian.AppendUint16(b, id)
	b = binary.BigEndian.AppendUint16(b, q.flags&^(FlagQR|FlagAA|FlagTC|FlagRA|FlagZ|rcodeMask))
	ar := byte(0)
	if q.edns.Present {
		ar = 1
	}
	b = append(b, 0, 1, 0, 0, 0, 0, 0, ar)
	b = append(b, q.Name()...)
	b = binary.BigEndian.AppendUint16(b, q.qtype)
	b = binary.BigEndian.AppendUint16(b, q.qclass)
	if q.edns.Present {
		b = q.edns.Append(b)
	}
	return b
}
