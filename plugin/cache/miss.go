package cache

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/cache/freq"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

var clog = log.NewWithPlugin("cache")

// ResponseWriter is the writer that the plugins below get: what they write is kept, if it
// is to be kept, and passed on with the TTLs that it is kept with.
type ResponseWriter struct {
	dns.ResponseWriter
	*Cache

	ctx    context.Context
	client *dns.Msg // the query as the client sent it
	counts *counts
	remote net.Addr // instead of the client's address; nil: the client's
	silent bool     // nothing is passed on
	hits   int      // of the entry that is refreshed
	began  time.Time

	msg     *dns.Msg // the last message, as it would be passed on
	verdict verdict  // on it
	matched bool     // it is a reply to the query
	bogus   error    // why there is none, if a validator says so

	nonAuthoritative bool // see wire.Reply.SetNonAuthoritative
}

// miss runs the plugins below and passes on what they write. It tells t if they fail.
func (c *Cache) miss(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, t *turn, n *counts) (int, error) {
	rw := &ResponseWriter{ResponseWriter: w, Cache: c, ctx: ctx, client: r, counts: n, began: time.Now()}
	rcode, err := c.next(ctx, rw, r)
	if rcode != dns.RcodeServerFailure || rw.msg != nil || ctx.Err() != nil {
		return rcode, err
	}
	t.failed = &missFailure{err: err}
	if c.failures {
		if adapter, odd := plugin.NewWireAdapter(w, r); odd == nil {
			k := c.questionOf(&adapter.Query)
			c.keepFailure(&adapter.Reply, &adapter.Query, &k, err, n)
			adapter.Free()
		}
	}
	return rcode, err
}

// next runs the plugins below with a copy of the query that asks for the AD bit (RFC 6840
// §5.7), so that what is kept holds for those who want to know.
func (c *Cache) next(ctx context.Context, rw *ResponseWriter, r *dns.Msg) (int, error) {
	r = r.Copy()
	r.AuthenticatedData = true
	if opt := r.IsEdns0(); opt != nil && c.stripECS {
		opt.Option = slices.DeleteFunc(slices.Clone(opt.Option), func(o dns.EDNS0) bool { return o.Option() == dns.EDNS0SUBNET })
	}
	return plugin.NextOrFailure(c.Name(), c.Next, ctx, rw, r)
}

// Name and ServeDNS would be ambiguous otherwise: both are the cache's.
func (w *ResponseWriter) Name() string { return w.Cache.Name() }

// ConnectionState implements dns.ConnectionStater. The name that the client asked for is not handed on: what is kept is
// for all names that lead here.
func (w *ResponseWriter) ConnectionState() *tls.ConnectionState {
	return plugin.ConnectionState(w.ResponseWriter)
}

// RemoteAddr is the client's address; for a refresh, that of the client who made it due, of the kind that says what to
// ask over.
func (w *ResponseWriter) RemoteAddr() net.Addr {
	if w.remote != nil {
		return w.remote
	}
	return w.ResponseWriter.RemoteAddr()
}

// WriteMsg keeps m if it is to be kept, and passes it on.
func (w *ResponseWriter) WriteMsg(m *dns.Msg) error {
	w.msg = w.take(m)
	if w.silent {
		return nil
	}
	return w.ResponseWriter.WriteMsg(w.msg)
}

// TakeReply implements plugin.ReplyTaker: it notes what only the reply of an adapter tells, and wants the message.
func (w *ResponseWriter) TakeReply(reply *wire.Reply, _ *dns.Msg) (taken bool, err error) {
	w.nonAuthoritative = reply.NonAuthoritative()
	return false, nil
}

// SetNonAuthoritative is wire.Reply.SetNonAuthoritative for the message to come: hits of it have no AA.
func (w *ResponseWriter) SetNonAuthoritative(on bool) { w.nonAuthoritative = on }

// Write passes b on; nothing is kept of it.
func (w *ResponseWriter) Write(b []byte) (int, error) {
	clog.Warning("Caching called with Write: not caching reply")
	if w.silent {
		return 0, nil
	}
	return w.ResponseWriter.Write(b)
}

// take keeps m if it is to be kept, and returns it as it goes to the client. m is not changed.
func (w *ResponseWriter) take(m *dns.Msg) *dns.Msg {
	if w.client == nil { // made by others, who cannot tell the query
		return m
	}
	adapter, err := plugin.NewWireAdapter(w, w.client)
	if err != nil {
		return m
	}
	defer adapter.Free()
	out := *m // header and sections; the records are m's unless they are unpacked anew below
	opt := m.IsEdns0()
	out.Extra = withoutOPT(m.Extra)
	ede := edeIn(opt)
	state := request.Request{Req: w.client, W: w.ResponseWriter}
	if !state.Do() && !w.client.AuthenticatedData {
		out.AuthenticatedData = false
	}
	w.matched = state.Match(m)
	adapter.Reply.FoldOwners()
	w.verdict = verdict{kind: response.OtherError}
	if adapter.Reply.SetMsg(m) != nil {
		return &out
	}
	if m.Rcode <= maxRcode && w.judge(adapter, m, opt, ede) {
		if same, err := adapter.Reply.Msg(w.client); err == nil {
			out.Answer, out.Ns, out.Extra = same.Answer, same.Ns, same.Extra
		}
	} else if w.verdict.kind != response.Meta { // whose records a secondary keeps as they are
		for _, rrs := range [...]*[]dns.RR{&out.Answer, &out.Ns, &out.Extra} {
			*rrs = folded(*rrs, w.client.Question[0].Name)
		}
	}
	if whom, fits := w.questionOf(&adapter.Query).net.scopeOf(ecsOf(opt)); fits {
		addScope(&adapter.Reply, &adapter.Query, whom)
	}
	addEDE(&adapter.Reply, &adapter.Query, ede)
	adapter.Reply.AppendOPT(&out, w.client)
	return &out
}

// judge decides on m, which adapter's reply has been set to, and keeps it if it is to be kept. It reports whether all records have got one TTL.
func (w *ResponseWriter) judge(adapter *plugin.WireAdapter, m *dns.Msg, opt *dns.OPT, ede []byte) (treated bool) {
	now := w.now()
	k := w.questionOf(&adapter.Query)
	whom, fits := k.net.scopeOf(ecsOf(opt))
	w.verdict = w.classify(&adapter.Reply, facts{
		question:    &adapter.Query,
		truncated:   m.Truncated || adapter.Reply.Flag(wire.FlagTC),
		checkSigs:   opt != nil && opt.Do(),
		clientScope: !fits || k.odd,
		now:         now,
	})
	if !w.matched {
		w.counts.drops.Inc()
		return false
	}
	if !w.verdict.treat {
		return false
	}
	adapter.Reply.SetTTLs(w.verdict.ttl)
	adapter.Reply.SetNonAuthoritative(w.nonAuthoritative)
	if w.verdict.store {
		w.keep(&adapter.Reply, &k, stored{verdict: w.verdict, scope: whom, ede: ede, wildcard: wildcardOf(w.ctx), hits: w.hits, since: w.began}, now, w.counts)
	}
	return true
}

// ecsOf is the data of the client subnet option in opt, and whether there is one.
func ecsOf(opt *dns.OPT) (data []byte, ok bool) {
	if opt == nil {
		return nil, false
	}
	for _, o := range opt.Option {
		ecs, ok := o.(*dns.EDNS0_SUBNET)
		if !ok {
			continue
		}
		data = append(data, byte(ecs.Family>>8), byte(ecs.Family), ecs.SourceNetmask, ecs.SourceScope)
		if v4 := ecs.Address.To4(); ecs.Family == 1 && v4 != nil {
			return append(data, v4...), true
		}
		return append(data, ecs.Address...), true
	}
	return nil, false
}

// folded is rrs as wire.Reply.FoldOwners has them: owners that differ from name in case only are name. Neither rrs nor its
// records are changed.
func folded(rrs []dns.RR, name string) []dns.RR {
	out := rrs
	for i, rr := range rrs {
		if owner := rr.Header().Name; owner == name || !strings.EqualFold(owner, name) {
			continue
		}
		if &out[0] == &rrs[0] {
			out = slices.Clone(rrs)
		}
		out[i] = dns.Copy(rr)
		out[i].Header().Name = name
	}
	return out
}

func withoutOPT(rrs []dns.RR) []dns.RR {
	var out []dns.RR
	for _, rr := range rrs {
		if rr.Header().Rrtype != dns.TypeOPT {
			out = append(out, rr)
		}
	}
	return out
}

// stored is what is kept of a reply beside its records.
type stored struct {
	verdict
	scope    ecsScope // whom it is for
	ede      []byte   // extended errors
	failed   bool     // nobody answered
	wildcard string   // the wildcard that it was made from
	hits     int      // of the entry that it takes the place of
	cost     cost
	since    time.Time // when the plugins below were asked, or before; zero if that is not known
}

// keep stores the reply that w holds as an answer to k.
//
// It does not if a flush has come since they were asked: who flushes does not want what was true before. Nor does it
// keep where an alias led, if another Corefile has come meanwhile that has it lead elsewhere.
func (c *Cache) keep(w *wire.Reply, k *question, what stored, now time.Time, n *counts) {
	if c.flushedAfter(what.since) {
		return
	}
	e := packedEntry(w, k)
	e.kind, e.answers, e.ttl, e.cost, e.nonAuthoritative, e.stored = kind(what.kind), what.answers, what.ttl, what.cost, w.NonAuthoritative(), momentOf(now)
	if e.led = hasType(w, wire.Answer, wire.TypeCNAME); e.led && !c.leads() {
		return
	}
	switch {
	case what.scope.everyone && k.nets:
		all := k.turned()
		e.hash, e.about, e.forAll = all.hash, all.about, true
	case k.nets:
		e.more().scope = what.scope
	}
	if c.prefetch > 0 {
		e.freq = freq.New(now)
		e.freq.Reset(now, what.hits)
	}
	if len(what.ede) > 0 {
		e.more().ede, e.more().failed = what.ede, what.failed
	}
	if what.wildcard != "" {
		e.more().wildcard = what.wildcard
	}
	c.positive.tells(n)
	c.negative.tells(n)
	if positive(what.kind) {
		if !e.answers && c.preferPositive {
			where := e.key()
			if old := c.positive.former(&where, e.network()).good(); old != nil {
				e.more().lastGood = old
			}
		}
		c.file(c.positive, e, now)
		if e.answers || !c.preferPositive {
			c.negative.strike(e)
		}
	} else {
		c.file(c.negative, e, now)
	}
	if k.nets {
		c.outdate(e, k)
	}
	if c.flushedAfter(what.since) || e.led && !c.leads() { // meanwhile: who let go of entries may not have seen it
		c.positive.strike(e)
		c.negative.strike(e)
	}
	n.showEntries(c)
}

// wildcardOf is the wildcard that the answer to ctx's query was made from, "" if from none.
func wildcardOf(ctx context.Context) string {
	if f := metadata.ValueFunc(ctx, "zone/wildcard"); f != nil {
		return f()
	}
	return ""
}

// restoreMetadata sets the labels again that were set when the answer was made.
func (e *entry) restoreMetadata(ctx context.Context) {
	if e.extra != nil && e.extra.wildcard != "" {
		metadata.SetValueFunc(ctx, "zone/wildcard", func() string { return e.extra.wildcard })
	}
}
