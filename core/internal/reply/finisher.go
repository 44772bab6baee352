// Package reply makes a reply fit its client and ends it: size, OPT record, cookie, keepalive, padding, TSIG. It is
// the only code that does. What of that comes with the query, it judges: cookies (cookies.go) and signatures (tsig.go).
//
//	wire lane     wire.Reply, wire.Query ──▶ Wire  ─┐
//	message lane  wire.Reply, dns.Msg    ──▶ Taken ─┼──▶ end ──▶ extras: keepalive, padding ──▶ octets
//	              dns.Msg, dns.Msg       ──▶ Msg   ─┘
//	              rare kinds, writers of others ──▶ FitMsg ──▶ dns.Msg ──▶ their own packing
//
// A Finisher is what a listener has configured; it does not change, and any number of goroutines may use it. Writer
// is the dns.ResponseWriter of a query that a transport of ours received: it packs with a Finisher, and sends
// through a Sink. Start at Finisher.Wire.
package reply

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Finisher ends the replies of one listener.
type Finisher struct {
	// Cookies makes the cookies of clients (RFC 7873); nil if they are not answered.
	Cookies *cookie.Ring
	// Keepalive is how long a connection may be idle, in units of 100 ms (RFC 7828); 0 where that is not told.
	Keepalive uint16
	// Pad says that replies to padded queries are padded: the listener is an encrypted one (RFC 7830 §4, RFC 8467
	// §4.1).
	Pad bool
	// AnySize says that replies are of any size to clients of whatever EDNS size.
	AnySize bool
	// Secrets are those of TSIG by key name, in base64; nil if signatures are not looked at.
	Secrets map[string]string
	// Keyrings have more keys, which may be replaced at any time. They count if Secrets is not nil.
	Keyrings []*keyring.Ring
}

// Wire ends the reply that w holds for q. The result lies in w's buffer.
func (f *Finisher) Wire(w *wire.Reply, q *wire.Query) []byte {
	fitOptions(w, q)
	return f.WireError(w, q)
}

// fitOptions gives w the options that its client gets, but for those of a transport's own.
func fitOptions(w *wire.Reply, q *wire.Query) {
	if q.EDNS().Set&mayRepeat != 0 {
		repeatOptions(w, q.EDNS())
	}
	if len(w.Options()) > 0 {
		if _, names := q.EDNS().Option(wire.OptionECS); !names {
			w.DropOption(wire.OptionECS) // see namesNetwork
		}
	}
}

// WireError ends the error reply that w holds for q: as Wire, but options of the query are not repeated.
func (f *Finisher) WireError(w *wire.Reply, q *wire.Query) []byte {
	set := q.EDNS().Set
	b := w.Finish(q, edns.ReplySize(q.EDNS().Size))
	if set&(wire.HasKeepalive|wire.HasPadding) == 0 {
		return b
	}
	return f.addExtras(b, set, q.Proto == wire.TCP, q.Limit())
}

// packer is what packing a reply needs; it is used again and again.
type packer struct {
	reply wire.Reply
	buf   []byte
}

var packers = sync.Pool{New: func() any { return &packer{buf: make([]byte, 4096)} }}

// Msg sends m, a reply to req for the client c. m gets TC if the client does; else it is not changed. It reports
// false, and does nothing, for the rare kinds that only miekg/dns can pack: signed, with an extended rcode, or
// without exactly one question.
func (f *Finisher) Msg(m, req *dns.Msg, c *Client, to Sink) (done bool, err error) {
	if len(m.Question) != 1 || m.Rcode > 0xF || m.IsTsig() != nil {
		return false, nil
	}
	p := packers.Get().(*packer)
	defer packers.Put(p)
	p.reply.Reset(p.buf)
	if err := p.reply.SetMsg(m); err != nil {
		return true, fmt.Errorf("packing a reply: %w", err)
	}
	asked := req.IsEdns0()
	b := f.end(&p.reply, wire.EndMsg(m, c.size(asked)), c, asked, m.IsEdns0())
	if p.reply.Flag(wire.FlagTC) && !m.Truncated {
		m.Truncated = true // for those that log the message
	}
	return true, to.Send(b)
}

// Taken ends w, a reply that lies in an adapter, for the client c whose query plugins saw as req. The result lies in
// w's buffer.
func (f *Finisher) Taken(w *wire.Reply, req *dns.Msg, c *Client) []byte {
	asked := req.IsEdns0()
	return f.end(w, wire.EndFor(req, c.size(asked)), c, asked, nil)
}

// end ends a reply. asked is the OPT record of the query and opt the one that plugins gave the reply, nil if there
// is none.
func (f *Finisher) end(w *wire.Reply, end wire.End, c *Client, asked, opt *dns.OPT) []byte {
	if asked == nil {
		return w.End(end)
	}
	end.OPT, end.Size, end.OPTFlags = true, edns.ReplySize(asked.UDPSize()), uint16(asked.Hdr.Ttl&0xff00)
	_, has := w.OPT()
	if opt != nil {
		w.SetOptions(opt)
	} else if options := request.RepeatedOptions(asked); len(options) > 0 && len(w.Options()) == 0 && !has {
		w.SetOptions(&dns.OPT{Hdr: dns.RR_Header{Name: "."}, Option: options})
	}
	if len(w.Options()) > 0 && !namesNetwork(asked) {
		w.DropOption(wire.OptionECS)
	}
	if len(asked.Option) == 0 {
		return w.End(end)
	}
	_, end.Cookie = f.judge(asked, wire.AddrOf(c.Remote))
	return f.addExtrasFor(asked, w.End(end), c.Network == "tcp", end.Limit)
}

// namesNetwork reports whether a client names its network (EDNS client subnet). Only such a one is told for which
// network the reply is (RFC 7871 §7.2.2); others may have been given one by a plugin.
func namesNetwork(asked *dns.OPT) bool {
	return slices.ContainsFunc(asked.Option, func(o dns.EDNS0) bool { return o.Option() == dns.EDNS0SUBNET })
}

// FitMsg makes m the reply to req that the client at the other end of w gets: with an OPT record if it sent one,
// with its cookie unless addr is invalid, and cut to its size unless replies are of any size there. m is changed; a
// signed one is not cut, and what another server has signed stays as it is (RFC 8945 §5.5).
func (f *Finisher) FitMsg(m, req *dns.Msg, w dns.ResponseWriter, addr netip.Addr) {
	if signedElsewhere(m.IsTsig()) {
		return
	}
	state := request.Request{Req: req, W: w}
	extended := m.Rcode > 0xF
	if !state.SizeAndDo(m) && extended {
		m.Rcode = dns.RcodeServerFailure // half of it, without an OPT record, is another code
		return
	}
	if addr.IsValid() {
		f.addCookie(m, req, addr)
		if opt := m.IsEdns0(); opt != nil && !namesNetwork(req.IsEdns0()) {
			opt.Option = slices.DeleteFunc(slices.Clone(opt.Option), func(o dns.EDNS0) bool { return o.Option() == dns.EDNS0SUBNET })
		}
	}
	if m.IsTsig() == nil && (f == nil || !f.AnySize) {
		state.Scrub(m)
	}
}

// AsSent is a copy of m, a reply to req, as the client at the other end of w gets it: with an OPT record if it sent
// one, and cut to its size. m is not changed. Padding and the like of a transport's own are left out.
func (f *Finisher) AsSent(m, req *dns.Msg, w dns.ResponseWriter) *dns.Msg {
	sent := *m
	sent.Compress = true
	sent.Extra = make([]dns.RR, len(m.Extra))
	for i, rr := range m.Extra {
		if opt, ok := rr.(*dns.OPT); ok {
			rr = dns.Copy(opt)
		}
		sent.Extra[i] = rr
	}
	f.FitMsg(&sent, req, w, wire.AddrOf(w.RemoteAddr()))
	return &sent
}

// AppendSent appends to b the reply that w holds for q as Wire ends it, without padding and the like of a transport's
// own. w is not given other options: those who add some are still to come.
func (f *Finisher) AppendSent(b []byte, w *wire.Reply, q *wire.Query) []byte {
	size := edns.ReplySize(q.EDNS().Size)
	if q.EDNS().Set&mayRepeat == 0 && len(w.Options()) == 0 {
		return w.AppendFinished(b, q, size)
	}
	p := packers.Get().(*packer)
	defer packers.Put(p)
	p.reply.Reset(p.buf)
	p.reply.Copy(w)
	fitOptions(&p.reply, q)
	return p.reply.AppendFinished(b, q, size)
}

// OPT is the OPT record for a reply to req, nil if req has none.
func OPT(req *dns.Msg) *dns.OPT {
	asked := req.IsEdns0()
	if asked == nil {
		return nil
	}
	opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT, Ttl: asked.Hdr.Ttl & 0xff00}}
	opt.SetUDPSize(edns.ReplySize(asked.UDPSize()))
	return opt
}
