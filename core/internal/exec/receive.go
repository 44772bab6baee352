package exec

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/updates"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// wayBack is that of one message.
type wayBack interface {
	dns.ResponseWriter
	// Send sends a packed reply. b is not kept.
	Send(b []byte) error
	// Verify checks the signature of the query r, which came as packet.
	Verify(packet []byte, r *dns.Msg)
}

// atWork is the context of who has such a place, and nothing else to say.
var atWork = context.WithValue(context.Background(), eventloop.PlaceKey{}, eventloop.AtWork)

// ServeMessage serves one message in the message lane, as a transport received it: it is ignored, turned down for its
// form, or led to the plugins. The caller is one of those who may wait. packet is not kept. at is the message's
// position among those of its connection, which ends; nil if it has none.
func ServeMessage(s *service.Service, w *reply.Writer, packet []byte, at *updates.Position) {
	ctx := atWork
	if at != nil {
		ctx = updates.WithPosition(ctx, at)
		defer at.End()
	}
	if r, _ := Receive(s, w, packet, false); r != nil {
		s.ServeDNS(ctx, w, r)
	}
}

// Receive is the message of packet, nil if it is ignored or was turned down. It does not wait. With tells, the
// transport tells its client of a message that is no proper query in a way of its own, which the error is for; but one
// that plugins take over other transports, such as an UPDATE, gets NOTIMP.
func Receive(s *service.Service, w wayBack, packet []byte, tells bool) (*dns.Msg, error) {
	if tells {
		return receive(s, w, packet)
	}
	switch rc, ok := acceptable(packet, s.Opcodes); {
	case !ok:
		return nil, nil
	case rc != dns.RcodeSuccess:
		turnDown(s, w, &dns.Msg{MsgHdr: wire.Header(packet)}, rc)
		return nil, nil
	}
	r, err := wire.UnpackQuery(packet)
	if err != nil {
		turnDown(s, w, begin(r), dns.RcodeFormatError)
		return nil, nil
	}
	w.Verify(packet, r)
	return r, nil
}

// receive is Receive for transports that tell.
func receive(s *service.Service, w wayBack, packet []byte) (*dns.Msg, error) {
	r, err := dnsutil.UnpackRequest(packet)
	if err == nil {
		w.Verify(packet, r)
		return r, nil
	}
	if rc, ok := acceptable(packet, 0); ok && rc == dns.RcodeNotImplemented && s.Opcodes>>wire.Header(packet).Opcode&1 != 0 {
		r, _ := wire.UnpackQuery(packet)
		turnDown(s, w, begin(r), rc)
		return nil, nil
	}
	countTurnedDown(s, w, packet)
	return nil, err
}

// acceptable looks at a message's header. It reports false if the message deserves no
// reply, and a rcode if it is not worth to be read on. opcodes are those of service.Service; such messages have one
// question, and any number of other records: those of an UPDATE are prerequisites and changes (RFC 2136 §2).
func acceptable(b []byte, opcodes uint16) (rcode int, ok bool) {
	if len(b) < wire.HeaderLen {
		return 0, false
	}
	flags := binary.BigEndian.Uint16(b[2:])
	if flags&wire.FlagQR != 0 {
		return 0, false
	}
	op := int(flags >> 11 & 0xF)
	common := op == dns.OpcodeQuery || op == dns.OpcodeNotify
	if !common && opcodes>>op&1 == 0 {
		return dns.RcodeNotImplemented, true
	}
	count := func(i int) uint16 { return binary.BigEndian.Uint16(b[4+2*i:]) }
	if count(0) != 1 || common && (count(1) > 1 || count(2) > 1 || count(3) > 2) {
		return dns.RcodeFormatError, true
	}
	return dns.RcodeSuccess, true
}

// turnDown answers a message that is no proper query with its header, flags and all but AA, as nothing is said of a
// name here, and its question, if that could be read. It is counted first.
func turnDown(s *service.Service, w wayBack, r *dns.Msg, rc int) {
	m := &dns.Msg{MsgHdr: r.MsgHdr, Question: r.Question}
	m.Response, m.Authoritative, m.Zero, m.Rcode = true, false, false, rc
	countDropped(s, w, r, rc, m.Len())
	if b, err := m.Pack(); err == nil {
		w.Send(b)
	}
}

// begin is what is left of a message that could not be read to its end: the header, and the question if that could.
func begin(r *dns.Msg) *dns.Msg {
	if len(r.Question) != 1 {
		r.Question = nil
	}
	r.Answer, r.Ns, r.Extra = nil, nil, nil
	return r
}

// countTurnedDown counts a message that Receive would turn down, and of which the transport tells the client in a way
// of its own, with no reply.
func countTurnedDown(s *service.Service, w dns.ResponseWriter, packet []byte) {
	rc, ok := acceptable(packet, 0)
	if !ok {
		return
	}
	r := &dns.Msg{MsgHdr: wire.Header(packet)}
	if rc == dns.RcodeSuccess {
		rc = dns.RcodeFormatError
		r, _ = wire.UnpackQuery(packet)
	}
	countDropped(s, w, begin(r), rc, 0)
}

// countDropped counts a message that is no proper query, by its rcode, and the octets of its reply.
func countDropped(s *service.Service, w dns.ResponseWriter, r *dns.Msg, rc, octets int) {
	vars.Report(s.Label, request.Request{Req: r, W: w}, vars.Dropped, "", rcode.ToString(rc), "", octets, time.Now())
}
