package dnsserver

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// serveMessage serves one message in the message lane, as a transport received it: it is ignored, turned down for its
// form, or led to the plugins. packet is not kept.
func (s *Server) serveMessage(ctx context.Context, w *responder, packet []byte) {
	if r := s.receive(w, packet); r != nil {
		s.ServeDNS(ctx, w, r)
	}
}

// serveTimed is serveMessage on a worker, and notes whether that was needed.
func (s *Server) serveTimed(ctx context.Context, w *responder, packet []byte) {
	w.timed = true
	began := sinceStart()
	s.serveMessage(ctx, w, packet)
	s.tempo.add(gain(time.Duration(sinceStart() - began - w.sending.Load())))
}

// receive is the message of packet, nil if it is ignored or was turned down. It does not wait.
func (s *Server) receive(w *responder, packet []byte) *dns.Msg {
	switch rc, ok := acceptable(packet); {
	case !ok:
		return nil
	case rc != dns.RcodeSuccess:
		s.turnDown(w, &dns.Msg{MsgHdr: wire.Header(packet)}, rc)
		return nil
	}
	r, err := wire.UnpackQuery(packet)
	if err != nil {
		if len(r.Question) != 1 {
			r.Question = nil
		}
		r.Answer, r.Ns, r.Extra = nil, nil, nil
		s.turnDown(w, r, dns.RcodeFormatError)
		return nil
	}
	w.verify(packet, r)
	return r
}

// acceptable looks at a message's header. It reports false if the message deserves no
// reply, and a rcode if it is not worth to be read on.
func acceptable(b []byte) (rcode int, ok bool) {
	if len(b) < wire.HeaderLen {
		return 0, false
	}
	flags := binary.BigEndian.Uint16(b[2:])
	if flags&wire.FlagQR != 0 {
		return 0, false
	}
	if op := int(flags >> 11 & 0xF); op != dns.OpcodeQuery && op != dns.OpcodeNotify {
		return dns.RcodeNotImplemented, true
	}
	count := func(i int) uint16 { return binary.BigEndian.Uint16(b[4+2*i:]) }
	if count(0) != 1 || count(1) > 1 || count(2) > 1 || count(3) > 2 {
		return dns.RcodeFormatError, true
	}
	return dns.RcodeSuccess, true
}

// turnDown answers a message that is no proper query with its header, flags and all, and its question, if
// that could be read, and counts it.
func (s *Server) turnDown(w *responder, r *dns.Msg, rc int) {
	m := &dns.Msg{MsgHdr: r.MsgHdr, Question: r.Question}
	m.Response, m.Zero, m.Rcode = true, false, rc
	if b, err := m.Pack(); err == nil {
		w.transmit(b)
	}
	vars.Report(s.Addr, request.Request{Req: r, W: w}, vars.Dropped, "", rcode.ToString(rc), "", m.Len(), time.Now())
}
