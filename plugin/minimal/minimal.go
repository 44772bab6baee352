// Package minimal leaves out of positive answers what was not asked for: the authority and the additional section.
//
//	reply of the plugins below ──Typify──▶ positive, and it answers ──▶ answer section alone
//	                                  └──▶ denial, referral, error ───▶ as it is
//
// Whether a reply is shortened is decided by shortens for both lanes: as a message it gets empty sections, as bytes it is
// written anew. Start there. Start at handler.ServeDNS.
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

// ServeDNS passes the query on with a writer that shortens replies. Zone transfers are left alone.
func (h handler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) == 0 || isTransfer(r.Question[0].Qtype) {
		return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
	}
	sw := &shortWriter{Wrapped: plugin.Wrapped{ResponseWriter: w}, query: r}
	rcode, err := plugin.NextOrFailure(h.Name(), h.Next, ctx, sw, r)
	if sw.written && !plugin.ClientWrite(rcode) {
		return dns.RcodeSuccess, err // else the server would write once more
	}
	return rcode, err
}

// ServeWire passes the query on and shortens the reply that comes back.
func (h handler) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	out := plugin.NextWire(h.Name(), h.Next, ctx, w, q)
	if out != wire.Done || !w.Holds() || mixed(w) {
		return out
	}
	flags, opt := w.OPT()
	if w.Count(wire.Authority)+w.Count(wire.Additional) == 0 && !opt {
		return out
	}
	kind := response.TypifyWire(w, q, flags&wire.OPTFlagDO != 0, time.Now())
	if shortens(kind, hasSOA(w), func() bool { return w.Answers(q) }) {
		shorten(w, q)
	}
	return out
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

// shortWriter writes positive answers without their other sections.
type shortWriter struct {
	plugin.Wrapped
	query   *dns.Msg
	written bool
}

// WriteMsg writes m, or a shorter copy of it. m is not changed.
func (w *shortWriter) WriteMsg(m *dns.Msg) error {
	w.written = true
	if len(m.Ns)+len(m.Extra) == 0 || w.mixed(m) {
		return w.ResponseWriter.WriteMsg(m)
	}
	kind, _ := response.Typify(m, time.Now().UTC())
	if shortens(kind, holdsSOA(m.Ns), func() bool { return w.answers(m) }) {
		short := *m
		short.Ns, short.Extra = nil, nil
		m = &short
	}
	return w.ResponseWriter.WriteMsg(m)
}

// mixed reports whether m is asked for class IN and answers with records of another class: it is left to the client to make
// sense of that.
func (w *shortWriter) mixed(m *dns.Msg) bool {
	for _, rr := range m.Answer {
		if rr.Header().Class != dns.ClassINET && w.query.Question[0].Qclass == dns.ClassINET {
			return true
		}
	}
	return false
}

// answers reports whether m answers the query. What cannot be read as a reply does not.
func (w *shortWriter) answers(m *dns.Msg) bool {
	lane, err := plugin.NewLane(w, w.query)
	if err != nil {
		return false
	}
	defer lane.Free()
	return lane.Reply.SetMsg(m) == nil && lane.Reply.Answers(&lane.Query)
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
