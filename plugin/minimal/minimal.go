// Package minimal leaves out of positive answers what was not asked for: the authority and the additional section.
//
//	reply of the plugins below ──Typify──▶ positive, and it answers ──▶ answer section alone
//	                                  └──▶ denial, referral, error ───▶ as it is
//
// Whether a reply is shortened is decided by shortens for both lanes: as a message it gets empty sections, as bytes it is
// cut off. Start there. Start at handler.ServeDNS.
package minimal

import (
	"context"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "minimal"

// handler shortens the replies of the plugins below it.
type handler struct{ Next plugin.Handler }

// Name is the plugin's name.
func (h handler) Name() string { return pluginName }

// ServeDNS passes the query on, and shortens its reply. Zone transfers are left alone, and so is what another server signs.
func (h handler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) == 0 || isTransfer(r.Question[0].Qtype) || r.IsTsig() != nil {
		return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
	}
	rcode, wrote, err := plugin.EditReplies(h, h.Next, ctx, w, r)
	if wrote && !plugin.ClientWrite(rcode) {
		return dns.RcodeSuccess, err // else the server would write once more
	}
	return rcode, err
}

// ServeWire passes the query on and shortens the reply that comes back.
func (h handler) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return plugin.EditWire(h, h.Next, ctx, w, q)
}

// WireSelf returns h.
func (h handler) WireSelf() plugin.Handler { return h }

// Prompt implements plugin.Prompt.
func (h handler) Prompt() bool { return true }

func isTransfer(qtype uint16) bool { return qtype == dns.TypeAXFR || qtype == dns.TypeIXFR }

// shortens decides whether a reply is shortened: if it is positive, and no denial that stands at the end of a chain of
// aliases, whose SOA record tells how long it holds (RFC 2308 §2.2). soa says that the authority section has such a
// record; answers is asked only then.
func shortens(kind response.Type, soa bool, answers func() bool) bool {
	return kind == response.NoError && (!soa || answers())
}

// Edit shortens the reply that w holds, if it is one that shortens is about.
func (h handler) Edit(w *wire.Reply, q *wire.Query) {
	flags, opt := w.OPT()
	if w.Count(wire.Authority)+w.Count(wire.Additional) == 0 && !opt || q.Class() == wire.ClassIN && mixed(w) {
		return
	}
	kind := response.TypifyReply(w, int(q.Flags()>>11&0xF), q.Type(), flags&wire.OPTFlagDO != 0, time.Now())
	if shortens(kind, hasSOA(w), func() bool { return w.Answers(q) }) {
		shorten(w)
	}
}

// EditMsg returns m, or a shorter copy of it.
func (h handler) EditMsg(m, r *dns.Msg) *dns.Msg {
	if len(m.Ns)+len(m.Extra) == 0 || r.Question[0].Qclass == dns.ClassINET && mixedMsg(m) {
		return m
	}
	kind, _ := response.Typify(m, time.Now().UTC())
	if shortens(kind, holdsSOA(m.Ns), func() bool { return answers(m, r) }) {
		short := *m
		short.Ns, short.Extra = nil, nil
		return &short
	}
	return m
}

// mixedMsg reports whether the answer of m has records of another class than IN, which was asked for: it is left to the client
// to make sense of that.
func mixedMsg(m *dns.Msg) bool {
	for _, rr := range m.Answer {
		if rr.Header().Class != dns.ClassINET {
			return true
		}
	}
	return false
}

// answers reports whether m answers the query r. What cannot be read as a reply does not.
func answers(m, r *dns.Msg) bool {
	var q wire.Query
	var w wire.Reply
	return q.SetMsg(r, wire.Peer{}) == nil && w.SetMsg(m) == nil && w.Answers(&q)
}

func hasSOA(w *wire.Reply) bool {
	for _, r := range w.Section(wire.Authority) {
		if r.Type == wire.TypeSOA {
			return true
		}
	}
	return false
}

// holdsSOA is hasSOA for the authority section of a message.
func holdsSOA(rrs []dns.RR) bool {
	for _, rr := range rrs {
		if rr.Header().Rrtype == dns.TypeSOA {
			return true
		}
	}
	return false
}
