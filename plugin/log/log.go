// Package log writes a line about each query, or about some: by name and by the class of the reply.
//
//	query ──▶ the first rule whose names cover it ──▶ chain ──▶ class of the reply ──▶ line after the rule's format
//
// A line tells what the client asked, whatever plugins further down made of the query. Start at Logger.ServeDNS; setup.go
// has the formats.
package log

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/edns"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/replacer"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Logger logs queries by its rules.
type Logger struct {
	Next  plugin.Handler
	Rules []Rule

	ready []*readyRule // Rules; nil if the directive did not make them
}

// Rule says how queries for some names are logged.
type Rule struct {
	NameScope string                      // a zone; queries for it and for names below it
	Class     map[response.Class]struct{} // classes of replies that are logged
	Format    string                      // of the line
}

// logs reports whether replies of a class are logged.
func (r *Rule) logs(class response.Class) bool {
	_, ok := r.Class[class]
	return ok || r.all()
}

// all reports whether replies of each class are logged.
func (r *Rule) all() bool {
	_, all := r.Class[response.All]
	return all
}

// readyRule is a Rule with what would have to be found out for each query.
type readyRule struct {
	*Rule
	scope  []byte // NameScope in wire form
	format *replacer.Format
	all    bool
	slower time.Duration // only queries are logged that took so long
	sampler
	anyAddress bool // the block listens on all addresses
}

// settle makes {local} of a query over UDP that came to a socket of all addresses the socket's own, as logs of
// CoreDNS have it.
func (r *readyRule) settle(f *replacer.Facts) {
	if r.anyAddress && !f.TCP {
		f.Local, f.LocalAddr = netip.AddrPortFrom(netip.IPv6Unspecified(), f.Local.Port()), nil
	}
}

// part is which of the queries that a rule is for are logged. The zero part is all.
type part struct {
	sample int           // one of so many, chosen by chance; 0 and 1 are all
	slower time.Duration // such as took so long
}

// ready is r with what it logs of the queries that it is for.
func (r *Rule) ready(p part) *readyRule {
	return &readyRule{Rule: r, format: replacer.Parse(r.Format), all: r.all(), slower: p.slower, sampler: sampler{one: p.sample}}
}

// rule is the rule for a name, nil if there is none.
func (l *Logger) rule(name string) *readyRule {
	for i := range l.Rules {
		switch {
		case !plugin.Name(l.Rules[i].NameScope).Matches(name):
		case l.ready != nil:
			return l.ready[i]
		default:
			return l.Rules[i].ready(part{})
		}
	}
	return nil
}

// ruleOf is rule for a lower name in wire form.
func (l *Logger) ruleOf(name []byte) *readyRule {
	if l.ready == nil {
		return l.rule(wire.Text(name))
	}
	for i := range l.ready {
		if wire.Below(name, l.ready[i].scope) {
			return l.ready[i]
		}
	}
	return nil
}

// Name is the plugin's name.
func (l Logger) Name() string { return pluginName }

// ReadsMetadata reports whether a rule's format reads labels.
func (l Logger) ReadsMetadata() bool {
	for i := range l.Rules {
		if replacer.Parse(l.Rules[i].Format).HasLabels() {
			return true
		}
	}
	return false
}

// ServeDNS passes the query on and logs it when it has been served.
func (l Logger) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	rule := l.rule(state.Name())
	if rule == nil {
		return plugin.NextOrFailure(l.Name(), l.Next, ctx, w, r)
	}
	e := newEntry()
	defer e.free()
	e.facts.SetRequest(&state)
	rule.settle(&e.facts)
	rec := &recorder{Recorder: dnstest.Recorder{ResponseWriter: w, Start: time.Now()}, facts: &e.facts}
	var lookedUp func() string
	if rule.format.HasLookedUp() {
		ctx, lookedUp = plugin.WithLookedUp(ctx)
	}
	rcode, err := plugin.NextOrFailure(l.Name(), l.Next, ctx, rec, r)
	rec.end()
	if lookedUp != nil {
		e.facts.LookedUp = lookedUp()
	}
	if !plugin.ClientWrite(rcode) { // the server will write this
		rec.taken = false
		rec.Msg = new(dns.Msg).SetRcode(r, rcode)
		rec.Msg.RecursionAvailable = edns.Resolves(err)
		rec.Rcode, rec.Len = rcode, rec.Msg.Len()
	}
	if !rec.taken {
		rec.typ = typeOf(rec.Msg, state.Do())
		e.facts.SetRecorder(&rec.Recorder)
	}
	class := response.Classify(rec.typ)
	label(ctx, rec.typ, class)
	if rule.logs(class) && time.Since(rec.Start) >= rule.slower && rule.chosen(nil) {
		e.write(ctx, rule)
		if ctx.Value(plugin.ServerKey{}) == nil { // no server sees to it that lines are written
			clog.Flush()
		}
	}
	return rcode, err
}

// ServeWire passes the query on and logs it when it has been served.
func (l Logger) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	out := plugin.NextWire(l.Name(), l.Next, ctx, w, q)
	if out != wire.Done {
		return out
	}
	rule := l.ruleOf(q.Lower())
	if rule == nil || !rule.chosen(q.Loop()) {
		return out
	}
	w.Cut(q)                      // so that it is known whether the reply gets TC
	took := time.Since(q.Arrival) // half of what time.Now takes
	if took < rule.slower {
		return out
	}
	if !rule.all && !rule.logs(response.Classify(response.TypifyWire(w, q, q.DO(), time.Now().UTC()))) {
		return out
	}
	if l := q.Loop(); l != nil && clog.Gathers() {
		batches.Get(l).add(ctx, rule, w, q, took)
		return out
	}
	e := newEntry()
	defer e.free()
	e.facts.SetQuery(q)
	rule.settle(&e.facts)
	e.facts.SetReply(w, q, took)
	e.write(ctx, rule)
	return out
}

// WireSelf implements plugin.WireHandler.
func (l Logger) WireSelf() plugin.Handler { return l }

// Prompt implements plugin.Prompt.
func (l Logger) Prompt() bool { return true }

// typeOf is the type of a reply to a query that has the DO bit, or not.
func typeOf(m *dns.Msg, do bool) response.Type {
	if do && m != nil && m.IsEdns0() == nil { // it gets an OPT record when it is sent
		sent := *m
		sent.Extra = append(slices.Clip(m.Extra), &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT, Ttl: 1 << 15}})
		m = &sent
	}
	typ, _ := response.Typify(m, time.Now().UTC())
	return typ
}

// label puts a reply's type and class into the query's metadata.
func label(ctx context.Context, typ response.Type, class response.Class) {
	if metadata.SetValueFunc(ctx, "log/type", typ.String) {
		metadata.SetValueFunc(ctx, "log/class", class.String)
	}
}

// entry is a line in the making.
type entry struct {
	facts replacer.Facts
	line  []byte
}

var entries = sync.Pool{New: func() any { return new(entry) }}

func newEntry() *entry { return entries.Get().(*entry) }

func (e *entry) free() {
	e.facts = replacer.Facts{} // it points into the query
	entries.Put(e)
}

// write logs the line about e's facts after the rule's format. Labels are read from ctx.
func (e *entry) write(ctx context.Context, rule *readyRule) {
	if clog.JSON() {
		e.line = rule.format.Append(e.line[:0], ctx, &e.facts)
		clog.Record(string(e.line), fields(&e.facts)...)
		return
	}
	e.line = append(e.line[:0], level...)
	e.line = rule.format.Append(e.line, ctx, &e.facts)
	clog.Line(e.line)
}
