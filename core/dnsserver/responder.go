package dnsserver

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// outlet is a transport's way back to one client. It may be used by several goroutines, and after the
// query that it was made for has been served.
type outlet interface {
	// send sends one message. b is not kept.
	send(b []byte) error
	// Close ends the connection, where there is one.
	Close() error
	// Hijack leaves the connection to the caller, where there is one.
	Hijack()
}

// responder is the dns.ResponseWriter of a query that a transport of ours received.
// There is one for each query, so that handlers may keep it.
type responder struct {
	out           outlet
	server        *Server
	network       string // udp or tcp
	remote, local net.Addr
	limit         int // of replies in octets; 0: the client's EDNS size
	tls           *tls.ConnectionState
	timed         bool         // sending is counted
	sending       atomic.Int64 // time.Duration that sending took
	signature
}

// transmit sends one message. b is not kept.
func (w *responder) transmit(b []byte) error {
	if !w.timed {
		return w.out.send(b)
	}
	began := sinceStart()
	err := w.out.send(b)
	w.sending.Add(sinceStart() - began)
	return err
}

func (w *responder) LocalAddr() net.Addr         { return w.local }
func (w *responder) RemoteAddr() net.Addr        { return w.remote }
func (w *responder) Network() string             { return w.network }
func (w *responder) Close() error                { return w.out.Close() }
func (w *responder) Hijack()                     { w.out.Hijack() }
func (w *responder) Write(b []byte) (int, error) { return len(b), w.transmit(b) }

// ConnectionState is the TLS state of the query's connection, nil without TLS.
func (w *responder) ConnectionState() *tls.ConnectionState { return w.tls }

// verify checks the signature of the query r, which came as packet (RFC 8945 §5.2).
func (w *responder) verify(packet []byte, r *dns.Msg) { w.check(w.server, packet, r) }

// peer is who asks.
func (w *responder) peer() wire.Peer {
	p := wire.PeerOf(w.remote, w.local)
	p.Limit = uint16(w.limit)
	return p
}

// send sends one message as it is.
func (w *responder) send(b []byte) error { return w.transmit(b) }

// WriteMsg packs m as it is and sends it, signed if it has a TSIG record.
func (w *responder) WriteMsg(m *dns.Msg) error {
	b, err := w.pack(m)
	if err != nil {
		return err
	}
	return w.transmit(b)
}

// packer is what packing a reply needs; it is used again and again.
type packer struct {
	reply wire.Reply
	buf   []byte
}

var packers = sync.Pool{New: func() any { return &packer{buf: make([]byte, 4096)} }}

// writeFit makes m, a reply to req, fit the client and sends it. m gets TC if the client does; else it
// is not changed, unless it is one of the rare kinds that only miekg/dns can pack.
func (w *responder) writeFit(m, req *dns.Msg) error {
	if len(m.Question) != 1 || m.Rcode > 0xF || m.IsTsig() != nil {
		return w.writeRare(m, req)
	}
	p := packers.Get().(*packer)
	defer packers.Put(p)
	p.reply.Reset(p.buf)
	if err := p.reply.SetMsg(m); err != nil {
		return fmt.Errorf("packing a reply: %w", err)
	}
	asked := req.IsEdns0()
	packed := w.end(&p.reply, wire.EndMsg(m, w.size(asked)), asked, m.IsEdns0())
	if p.reply.Flag(wire.FlagTC) && !m.Truncated {
		m.Truncated = true // for those that log the message
	}
	return w.transmit(packed)
}

// takeReply is writeFit for a reply that lies in the lane, and whose plugin was given req.
func (w *responder) takeReply(reply *wire.Reply, req *dns.Msg) error {
	asked := req.IsEdns0()
	return w.transmit(w.end(reply, wire.EndFor(req, w.size(asked)), asked, nil))
}

// end ends a reply as its client is to get it. asked is the OPT record of the query and opt the one that plugins gave the
// reply, nil if there is none.
func (w *responder) end(reply *wire.Reply, end wire.End, asked, opt *dns.OPT) []byte {
	if asked == nil {
		return reply.End(end)
	}
	end.OPT, end.Size, end.OPTFlags = true, edns.ReplySize(asked.UDPSize()), uint16(asked.Hdr.Ttl&0xff00)
	if opt != nil {
		reply.SetOptions(opt)
	} else if options := request.RepeatedOptions(asked); len(options) > 0 && len(reply.Options()) == 0 {
		reply.SetOptions(&dns.OPT{Hdr: dns.RR_Header{Name: "."}, Option: options})
	}
	if len(asked.Option) == 0 || w.server == nil {
		return reply.End(end)
	}
	_, end.Cookie = w.server.judgeOption(asked, addrOf(w.remote))
	return w.server.extras.addFor(asked, reply.End(end), w.network == "tcp", end.Limit)
}

// size is how long a reply may be.
func (w *responder) size(asked *dns.OPT) int {
	if w.limit > 0 {
		return w.limit
	}
	if asked == nil {
		return dns.MinMsgSize
	}
	return int(edns.Size("udp", asked.UDPSize()))
}

// writeRare is writeFit for messages that are signed, have an extended rcode, or not exactly one question.
func (w *responder) writeRare(m, req *dns.Msg) error {
	w.server.fit(m, request.Request{Req: req, W: w}, false)
	return w.WriteMsg(m)
}

// fit makes m the reply that the client of state gets: with an OPT record if it sent one, and cut to its size, unless replies are of
// any size there, or m is signed.
func (s *Server) fit(m *dns.Msg, state request.Request, anySize bool) {
	extended := m.Rcode > 0xF
	if !state.SizeAndDo(m) && extended {
		m.Rcode &= 0xF // there is no OPT record for the rest of it
		return
	}
	s.addCookie(m, state.Req, addrOf(state.W.RemoteAddr()))
	if !anySize && m.IsTsig() == nil {
		state.Scrub(m)
	}
}
