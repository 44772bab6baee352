// Package template makes answers from Go's text/template.
//
//	query ──▶ stanza.match: zone, class, type, regex, vars, conditions ──▶ data
//	                                                                        │
//	reply ◀── CNAME followed ◀── stanza.sections: texts or records ◀────────┘
//
// The template directives of a server block make one Handler, which tries them in order. What is rendered
// from nothing but the question is kept for the next one who asks the same; wire.go answers with it without a message. Start at
// Handler.ServeDNS.
package template

import (
	"context"
	"slices"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "template"

// Handler is the plugin.
type Handler struct {
	Zones     []string // of all Templates
	Next      plugin.Handler
	Templates []template
}

// Upstreamer looks up the names that CNAME records lead to. The reply may be nil.
type Upstreamer interface {
	Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error)
}

// Name implements plugin.Handler.
func (h Handler) Name() string { return pluginName }

// ServeDNS implements plugin.Handler.
func (h Handler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode == dns.OpcodeUpdate { // is for who serves the zone from its own data
		return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
	}
	state := request.Request{W: w, Req: r}
	if len(r.Question) == 0 || plugin.Zones(h.Zones).Matches(state.Name()) == "" {
		return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
	}
	for i := range h.Templates {
		t := &h.Templates[i]
		data, verdict, err := t.match(ctx, &state)
		switch {
		case err != nil:
			return dns.RcodeServerFailure, plugin.Error(pluginName, err)
		case verdict == answers:
			return t.answer(ctx, &state, data)
		case verdict == refuses:
			return dns.RcodeServerFailure, nil
		}
	}
	return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
}

// answer writes the reply of t.
func (t *template) answer(ctx context.Context, state *request.Request, data *data) (int, error) {
	labels := labelsOf(ctx, data)
	matches.WithLabelValues(labels...).Inc()
	if t.rcode == dns.RcodeServerFailure {
		if t.ede == nil {
			return dns.RcodeServerFailure, nil
		}
		m := new(dns.Msg).SetRcode(state.Req, t.rcode)
		t.explain(m)
		return dns.RcodeSuccess, state.W.WriteMsg(m)
	}
	m := new(dns.Msg).SetReply(state.Req)
	m.Authoritative, m.Rcode = true, t.rcode
	rrs, err := t.records(data, labels)
	if err != nil {
		return dns.RcodeServerFailure, plugin.Error(pluginName, err)
	}
	m.Answer, m.Ns, m.Extra = rrs[answer], rrs[authority], rrs[additional]
	if qtype := state.QType(); qtype == dns.TypeA || qtype == dns.TypeAAAA {
		t.follow(ctx, state, m)
	}
	t.explain(m)
	if err := state.W.WriteMsg(m); err != nil {
		return dns.RcodeSuccess, err
	}
	if m.Rcode == dns.RcodeNameError {
		return m.Rcode, nil
	}
	return dns.RcodeSuccess, nil // others would say that nothing was written
}

// explain adds the extended DNS error (RFC 8914) to m, if there is one. It reaches clients that sent an OPT record.
func (t *template) explain(m *dns.Msg) {
	if t.ede == nil {
		return
	}
	opt := m.IsEdns0()
	if opt == nil {
		m.SetEdns0(dns.DefaultMsgSize, false)
		opt = m.IsEdns0()
	}
	opt.Option = append(opt.Option, &dns.EDNS0_EDE{InfoCode: t.ede.InfoCode, ExtraText: t.ede.ExtraText})
}

// follow appends what the answer's CNAME records lead to. A target that cannot be looked up is left out: the
// client may ask for it. So is one that is come to over too many others. Where aliases lead in a circle, each stands
// once (RFC 2181 §5).
func (t *template) follow(ctx context.Context, state *request.Request, m *dns.Msg) {
	ctx, ok := upstream.Again(ctx, upstream.MaxLoops)
	if !ok {
		return
	}
	for _, rr := range m.Answer {
		cname, ok := rr.(*dns.CNAME)
		if !ok {
			continue
		}
		up, err := t.upstream.Lookup(ctx, *state, cname.Target, state.QType())
		if err != nil || up == nil {
			continue
		}
		m.Truncated = m.Truncated || up.Truncated
		for _, rr := range up.Answer {
			if !slices.ContainsFunc(m.Answer, func(has dns.RR) bool { return dns.IsDuplicate(has, rr) }) {
				m.Answer = append(m.Answer, rr)
			}
		}
	}
}
