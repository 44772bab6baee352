package request

import (
	"crypto/tls"

	"github.com/coredns/coredns/plugin/pkg/edns"

	"github.com/miekg/dns"
)

// SizeAndDo makes m's OPT record fit the query's (RFC 6891 §6.1.1), and reports whether
// the query had one. A query without OPT gets none. Else the reply's OPT is version 0, tells
// our own UDP size, and has the query's DO bit; m's own options stay, and if m had no OPT,
// those of the query that are answered by repeating them are repeated. The query is not changed.
func (r *Request) SizeAndDo(m *dns.Msg) bool {
	asked := r.Req.IsEdns0()
	if asked == nil {
		removeOPT(m)
		return false
	}
	opt := m.IsEdns0()
	if opt == nil {
		opt = new(dns.OPT)
		opt.Option = RepeatedOptions(asked)
		m.Extra = append(m.Extra[:len(m.Extra):len(m.Extra)], opt)
		if n := len(m.Extra); n > 1 && m.Extra[n-2].Header().Rrtype == dns.TypeTSIG {
			m.Extra[n-2], m.Extra[n-1] = m.Extra[n-1], m.Extra[n-2] // a signature stands last (RFC 8945 §5.1)
		}
	}
	opt.Hdr.Name = "."
	opt.Hdr.Rrtype = dns.TypeOPT
	opt.Hdr.Class = edns.ReplySize(asked.UDPSize())
	opt.Hdr.Ttl = asked.Hdr.Ttl & 0xff00 // Z bits and DO; no extended rcode, version 0
	return true
}

// removeOPT takes OPT records out of m's additional section, in a slice of its own.
func removeOPT(m *dns.Msg) {
	if m.IsEdns0() == nil {
		return
	}
	extra := make([]dns.RR, 0, len(m.Extra))
	for _, rr := range m.Extra {
		if rr.Header().Rrtype != dns.TypeOPT {
			extra = append(extra, rr)
		}
	}
	m.Extra = extra
}

// RepeatedOptions is those options of a query's OPT record that stand in the reply as they came.
func RepeatedOptions(asked *dns.OPT) (out []dns.EDNS0) {
	for _, o := range asked.Option {
		if edns.Repeated(o.Option()) {
			out = append(out, o)
		}
	}
	return out
}

// Scrub makes reply fit Size: names are compressed, and records are left out from the end if it is still too long. TC
// tells that something was left out which the client needs: answers, authority, or the glue of a referral (RFC 2181 §9,
// RFC 9471), also over TCP. Signed messages are not cut.
func (r *Request) Scrub(reply *dns.Msg) *dns.Msg {
	truncated, extra := reply.Truncated, reply.Extra
	answers, authority := len(reply.Answer), len(reply.Ns)
	reply.Truncate(r.Size())
	reply.Compress = true
	if reply.Truncated && !truncated && len(reply.Answer) == answers && len(reply.Ns) == authority {
		reply.Truncated = lostGlue(reply, extra)
	}
	return reply
}

// lostGlue reports whether a referral has lost addresses in the domain that it delegates.
func lostGlue(reply *dns.Msg, before []dns.RR) bool {
	if len(reply.Answer) > 0 || reply.Authoritative || len(reply.Ns) == 0 {
		return false
	}
	ns, ok := reply.Ns[0].(*dns.NS)
	if !ok {
		return false
	}
	kept := map[dns.RR]bool{}
	for _, rr := range reply.Extra {
		kept[rr] = true
	}
	for _, rr := range before {
		h := rr.Header()
		if !kept[rr] && (h.Rrtype == dns.TypeA || h.Rrtype == dns.TypeAAAA) && dns.IsSubDomain(ns.Hdr.Name, h.Name) {
			return true
		}
	}
	return false
}

// ScrubWriter makes each message that is written through it fit the client of one query.
type ScrubWriter struct {
	dns.ResponseWriter
	req *dns.Msg
}

// NewScrubWriter is a ScrubWriter for the query req.
func NewScrubWriter(req *dns.Msg, w dns.ResponseWriter) *ScrubWriter { return &ScrubWriter{w, req} }

// WriteMsg makes m fit with SizeAndDo and Scrub, and writes it.
func (s *ScrubWriter) WriteMsg(m *dns.Msg) error {
	state := Request{Req: s.req, W: s.ResponseWriter}
	state.SizeAndDo(m)
	state.Scrub(m)
	return s.ResponseWriter.WriteMsg(m)
}

// ConnectionState is the TLS state of the connection that the query came on, nil if it is none of TLS.
func (s *ScrubWriter) ConnectionState() *tls.ConnectionState {
	if c, ok := s.ResponseWriter.(dns.ConnectionStater); ok {
		return c.ConnectionState()
	}
	return nil
}
