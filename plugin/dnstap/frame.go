package dnstap

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"

	tap "github.com/dnstap/golang-dnstap"
	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of fields, as dnstap.proto has them.
const (
	fieldIdentity = 1
	fieldVersion  = 2
	fieldExtra    = 3
	fieldMessage  = 14
	fieldType     = 15
)

// Wire types of protocol buffers.
const (
	varint  = 0
	octets  = 2
	fixed32 = 5
)

// appendFrame appends a frame about m to b, with its length before it (Frame Streams). It knows all fields that the
// library has; the package proto would need ten times as long.
func (h *Dnstap) appendFrame(b []byte, m *tap.Message, extra string) []byte {
	begin := len(b)
	b = append(b, 0, 0, 0, 0)
	b = appendBytes(b, fieldIdentity, h.Identity)
	b = appendBytes(b, fieldVersion, h.Version)
	if extra != "" {
		b = append(appendVarint(append(b, fieldExtra<<3|octets), uint64(len(extra))), extra...)
	}
	// The length of a message stands before it, in one to three octets: it is moved when that is known.
	b = append(b, fieldMessage<<3|octets)
	at := len(b)
	b = appendMessage(append(b, 0), m)
	n := len(b) - at - 1
	if more := protowire.SizeVarint(uint64(n)) - 1; more > 0 {
		b = append(b, make([]byte, more)...)
		copy(b[at+1+more:], b[at+1:at+1+n])
	}
	appendVarint(b[:at], uint64(n))
	b = append(b, fieldType<<3|varint, byte(tap.Dnstap_MESSAGE))
	binary.BigEndian.PutUint32(b[begin:], uint32(len(b)-begin-4))
	return b
}

// appendMessage appends the fields of m.
func appendMessage(b []byte, m *tap.Message) []byte {
	b = appendNumber(b, 1, m.Type)
	b = appendNumber(b, 2, m.SocketFamily)
	b = appendNumber(b, 3, m.SocketProtocol)
	b = appendBytes(b, 4, m.QueryAddress)
	b = appendBytes(b, 5, m.ResponseAddress)
	b = appendNumber(b, 6, m.QueryPort)
	b = appendNumber(b, 7, m.ResponsePort)
	b = appendNumber(b, 8, m.QueryTimeSec)
	b = appendFixed(b, 9, m.QueryTimeNsec)
	b = appendBytes(b, 10, m.QueryMessage)
	b = appendBytes(b, 11, m.QueryZone)
	b = appendNumber(b, 12, m.ResponseTimeSec)
	b = appendFixed(b, 13, m.ResponseTimeNsec)
	return appendBytes(b, 14, m.ResponseMessage)
}

// The tag of a field is one octet: no number is above 15.

func appendBytes(b []byte, field byte, v []byte) []byte {
	if v == nil {
		return b
	}
	return append(appendVarint(append(b, field<<3|octets), uint64(len(v))), v...)
}

func appendNumber[T ~int32 | ~uint32 | ~uint64](b []byte, field byte, v *T) []byte {
	if v == nil {
		return b
	}
	return appendVarint(append(b, field<<3|varint), uint64(*v))
}

func appendFixed(b []byte, field byte, v *uint32) []byte {
	if v == nil {
		return b
	}
	return binary.LittleEndian.AppendUint32(append(b, field<<3|fixed32), *v)
}

// appendVarint appends v, seven bits an octet. It is short enough to stand where it is called.
func appendVarint(b []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// event is a tap.Message with all that it points to, and the frames that are made of it.
type event struct {
	tap.Message
	typ              tap.Message_Type
	family           tap.SocketFamily
	protocol         tap.SocketProtocol
	client, server   [16]byte
	port, serverPort uint32
	asked, told      uint64 // seconds
	askedN, toldN    uint32 // nanoseconds
	packet           []byte // a message as it goes to the client
	frames           []byte
}

var events = sync.Pool{New: func() any { return new(event) }}

// newEvent is a message of a kind about q, which came at began.
func newEvent(typ tap.Message_Type, q *wire.Query, began time.Time) *event {
	e := events.Get().(*event)
	e.frames = e.frames[:0]
	e.typ, e.Type = typ, &e.typ
	e.asked, e.askedN = uint64(began.Unix()), uint32(began.Nanosecond())
	e.QueryTimeSec, e.QueryTimeNsec = &e.asked, &e.askedN
	e.protocol, e.SocketProtocol = tap.SocketProtocol_UDP, nil
	if q.Proto == wire.TCP {
		e.protocol = tap.SocketProtocol_TCP
	}
	e.SocketFamily, e.QueryAddress, e.ResponseAddress, e.QueryPort, e.ResponsePort = nil, nil, nil, nil, nil
	e.ResponseAddress, e.ResponsePort = e.address(q.Local, &e.server, &e.serverPort)
	e.QueryAddress, e.QueryPort = e.address(q.Client, &e.client, &e.port) // last: the family is the client's
	e.QueryMessage, e.ResponseMessage, e.ResponseTimeSec, e.ResponseTimeNsec = nil, nil, nil, nil
	return e
}

// address keeps an address in space and number. Without one it stays open, as do the family and the protocol.
func (e *event) address(a netip.AddrPort, space *[16]byte, number *uint32) (ip []byte, port *uint32) {
	if !a.IsValid() {
		return nil, nil
	}
	addr := a.Addr().Unmap()
	e.family = tap.SocketFamily_INET6
	if *number = uint32(a.Port()); addr.Is4() {
		e.family = tap.SocketFamily_INET
		four := addr.As4()
		ip = space[:copy(space[:], four[:])]
	} else {
		*space = addr.As16()
		ip = space[:]
	}
	e.SocketFamily, e.SocketProtocol = &e.family, &e.protocol
	return ip, number
}

// answered makes e tell of the reply that was given now.
func (e *event) answered(now time.Time) {
	e.typ = tap.Message_CLIENT_RESPONSE
	e.told, e.toldN = uint64(now.Unix()), uint32(now.Nanosecond())
	e.ResponseTimeSec, e.ResponseTimeNsec, e.QueryMessage = &e.told, &e.toldN, nil
}

// free lets e be used again. What it points to of others is forgotten.
func (e *event) free() {
	if e.QueryMessage, e.ResponseMessage = nil, nil; cap(e.frames)+cap(e.packet) <= keptSpace {
		events.Put(e)
	}
}
