package cache

import (
	"context"
	"net"
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

	msg     *dns.Msg // the last message, as it would be passed on
	verdict verdict  // on it
	matched bool     // it is a reply to the query
}

// miss runs the plugins below and passes on what they write.
func (c *Cache) miss(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, n *counts) (int, error) {
	rw := &ResponseWriter{ResponseWriter: w, Cache: c, ctx: ctx, client: r, counts: n}
	return c.next(ctx, rw, r)
}

// next runs the plugins below with a copy of the query that asks for the AD bit (RFC 6840
// §5.7), so that what is kept holds for those who want to know.
func (c *Cache) next(ctx context.Context, rw *ResponseWriter, r *dns.Msg) (int, error) {
	r = r.Copy()
	r.AuthenticatedData = true
	return plugin.NextOrFailure(c.Name(), c.Next, ctx, rw, r)
}

// Name and ServeDNS would be ambiguous otherwise: both are the cache's.
func (w *ResponseWriter) Name() string { return w.Cache.Name() }

// RemoteAddr is the client's address; for a refresh, which has none, a zero one.
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
	lane, err := plugin.NewLane(w, w.client)
	if err != nil {
		return m
	}
	defer lane.Free()
	out := *m // header and sections; the records are m's unless they are unpacked anew below
	opt := m.IsEdns0()
	out.Extra = withoutOPT(m.Extra)
	state := request.Request{Req: w.client, W: w.ResponseWriter}
	if !state.Do() && !w.client.AuthenticatedData {
		out.AuthenticatedData = false
	}
	w.matched = state.Match(m)
	lane.Reply.FoldOwners()
	if err := lane.Reply.SetMsg(m); err != nil {
		w.verdict = verdict{kind: response.OtherError}
		return &out
	}
	now := w.now()
	w.verdict = w.classify(&lane.Reply, facts{
		question:    &lane.Query,
		truncated:   m.Truncated || lane.Reply.Flag(wire.FlagTC),
		checkSigs:   opt != nil && opt.Do(),
		clientScope: scoped(opt),
		now:         now,
	})
	if !w.matched {
		w.counts.drops.Inc()
		return &out
	}
	if !w.verdict.treat {
		return &out
	}
	lane.Reply.SetTTLs(w.verdict.ttl)
	if w.verdict.store {
		k := keyOf(&lane.Query)
		w.keep(&lane.Reply, &k, kept{w.verdict, wildcardOf(w.ctx), w.hits}, now, w.counts)
	}
	if same, err := lane.Reply.Msg(w.client); err == nil {
		out.Answer, out.Ns, out.Extra = same.Answer, same.Ns, same.Extra
	}
	return &out
}

// scoped reports whether a reply says that it holds only for some clients (RFC 7871 §7.2.1).
func scoped(opt *dns.OPT) bool {
	if opt == nil {
		return false
	}
	for _, o := range opt.Option {
		if ecs, ok := o.(*dns.EDNS0_SUBNET); ok && ecs.SourceScope > 0 {
			return true
		}
	}
	return false
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

// kept is what is kept of a reply beside its records.
type kept struct {
	verdict
	wildcard string // the wildcard that it was made from
	hits     int    // of the entry that it takes the place of
}

// keep stores the reply that w holds under k.
func (c *Cache) keep(w *wire.Reply, k *key, what kept, now time.Time, n *counts) {
	e := &entry{key: *k, packed: w.Pack(), kind: what.kind, answers: what.answers, ttl: what.ttl, stored: now}
	e.name = append([]byte(nil), k.name...)
	if c.prefetch > 0 {
		e.freq = freq.New(now)
		e.freq.Reset(now, what.hits)
	}
	if what.wildcard != "" {
		e.extra = &entryExtra{wildcard: what.wildcard}
	}
	evicted := 0
	if positive(e.kind) {
		if old := c.positive.get(k).good(); !e.answers && c.preferPositive && old != nil {
			if e.extra == nil {
				e.extra = new(entryExtra)
			}
			e.extra.lastGood = old
		}
		evicted = c.positive.add(e)
		if e.answers || !c.preferPositive {
			c.negative.remove(k)
		}
	} else {
		evicted = c.negative.add(e)
	}
	if evicted > 0 {
		n.evictions[classIndex(e.kind)].Add(float64(evicted))
	}
	n.entries[0].Set(float64(c.positive.len()))
	n.entries[1].Set(float64(c.negative.len()))
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
