// Package wire is DNS on bytes: it reads a query where it lies in its packet,
// and builds the reply into the buffer from which it is sent.
//
//	packet ──Query.Parse──▶ Query ──plugins──▶ Reply ──Reply.Finish──▶ packet
//	                          ▲                  │  ▲
//	            Query.SetMsg  │        Reply.Msg ▼  │ Reply.SetMsg
//	                       *dns.Msg            *dns.Msg
//
// A Query is a view over the packet with its facts read once: the name as it
// was asked and in lower case, its hash, type, class, the EDNS facts, who asked.
// A Reply is an append-only message with a layout: where each record begins,
// where its TTL lies, of which type and section it is. So a later stage can
// reorder, cut or patch records without parsing them again. Packed is a reply's
// records put away for reuse, as a cache or a zone does.
//
// Names are uncompressed wire form (RFC 1035 §3.1) in []byte: length octets and
// labels, ended by a zero octet. "Lower" names have ASCII letters in lower case.
//
// What comes from outside is read at a cost of the order of its length, whatever it holds: see Effort.
//
// The package knows no socket, clock, policy or plugin, and nothing in it
// allocates on the way from Parse to Finish. Queries and replies belong to one
// goroutine at a time; Packed values never change and may be shared.
// Start at Query.Parse and Reply.Begin.
package wire

// Lengths and limits of RFC 1035 and RFC 6891.
const (
	HeaderLen  = 12    // octets of a message's header
	MaxName    = 255   // octets of a name in wire form, the root's octet included
	MaxLabel   = 63    // octets of a label
	MaxMessage = 65535 // octets of a message
	MinUDP     = 512   // octets of a reply that each client takes over UDP
	MaxUDP     = 65507 // octets of a reply over UDP: what a packet of IPv4 has room for, and one of IPv6, too (RFC 791)
)

// Types and classes that the package itself has to know.
const (
	TypeA      = 1
	TypeNS     = 2
	TypeCNAME  = 5
	TypeSOA    = 6
	TypePTR    = 12
	TypeMX     = 15
	TypeTXT    = 16
	TypeAAAA   = 28
	TypeSRV    = 33
	TypeDNAME  = 39
	TypeOPT    = 41
	TypeRRSIG  = 46
	TypeZONEMD = 63
	TypeIXFR   = 251
	TypeAXFR   = 252
	TypeANY    = 255

	ClassIN = 1
)

// Return codes (RFC 1035 §4.1.1, RFC 2136, RFC 6891).
const (
	Success        = 0
	FormErr        = 1
	ServFail       = 2
	NXDomain       = 3
	NotImplemented = 4
	Refused        = 5
	BadVers        = 16
)

// Bits of the header's second word.
const (
	FlagQR = 1 << 15
	FlagAA = 1 << 10
	FlagTC = 1 << 9
	FlagRD = 1 << 8
	FlagRA = 1 << 7
	FlagZ  = 1 << 6
	FlagAD = 1 << 5
	FlagCD = 1 << 4

	opcodeMask = 0xF << 11
	rcodeMask  = 0xF
)

// Outcome is what came of a query on the wire lane.
type Outcome uint8

const (
	// Unpack: the whole chain runs in the message lane, from the packet as it came.
	Unpack Outcome = iota
	// Done: decided. The Reply holds a message, a failure (Fail) or a drop (Drop).
	Done
	// Block: the query must wait; the chain runs again where waiting is allowed
	// (Query.MayBlock).
	Block
	// Park: the query waits for an exchange that was begun for it (Query.Await);
	// the chain runs again when the exchange has ended. Or it awaits nothing, for
	// there was no room (Query.Crowded).
	Park
)

func (o Outcome) String() string {
	switch o {
	case Unpack:
		return "unpack"
	case Done:
		return "done"
	case Block:
		return "block"
	case Park:
		return "park"
	}
	return "unknown outcome"
}
