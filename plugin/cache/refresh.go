package cache

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// refreshTime is how long a refresh in the background may take.
const refreshTime = 10 * time.Second

// refreshDue notes a hit and reports whether the entry should be fetched again now: it
// is asked for often and soon at its end, or its end is over. One that is verified was just asked for.
func (c *Cache) refreshDue(e *entry, left int, now time.Time) bool {
	if left <= 0 {
		return !c.verify && !e.fetch.running.Load() && !e.fetch.paused(now)
	}
	if c.prefetch <= 0 || e.freq == nil {
		return false
	}
	hits := e.freq.Update(c.duration, now)
	threshold := int(math.Ceil(float64(c.percentage) / 100 * float64(e.ttl)))
	return hits >= c.prefetch && left <= threshold && !e.fetch.running.Load()
}

func (f *fetchState) paused(now time.Time) bool { return int64(momentOf(now)) < f.pause.Load() }

// begin reports whether the caller is the one who may refresh; it then calls end.
func (f *fetchState) begin() bool { return f.running.CompareAndSwap(false, true) }

func (f *fetchState) end(ok bool, now time.Time, pause time.Duration) {
	if !ok && pause > 0 {
		f.pause.Store(int64(momentOf(now.Add(pause))))
	}
	f.running.Store(false)
}

// refresh fetches e's answer, which is good for so many seconds, again in the background. The client does not wait for
// it.
func (c *Cache) refresh(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, e *entry, n *counts, left int) {
	if !c.beginRefresh(e, n) {
		return
	}
	r = r.Copy()
	nobody := noClientFor(w)
	ctx, cancel := detached(anew(ctx, left))
	go func() {
		defer cancel()
		rw := c.fetch(ctx, nobody, r, e, n, false)
		c.endRefresh(e, rw.fit())
	}()
}

// anew is ctx for who asks for an answer while it is good: a resolver below has it, too, for as long.
func anew(ctx context.Context, left int) context.Context {
	if left > 0 {
		return advice.WithRefresh(ctx, left)
	}
	return ctx
}

// beginRefresh reports whether e is to be fetched again by the caller, who calls endRefresh then.
func (c *Cache) beginRefresh(e *entry, n *counts) bool {
	if !e.fetch.begin() {
		return false
	}
	if c.superseded(e) {
		e.fetch.end(true, c.now(), 0)
		return false
	}
	select {
	case c.refreshes <- struct{}{}:
		n.prefetch.Inc()
		return true
	default:
		e.fetch.end(true, c.now(), 0)
		return false
	}
}

// superseded reports whether what e was fetched again for has come since a query found e: what who asked for e is given
// in its place now, were it for more clients. An error, which old entries go before, is not that, nor is what has ended.
func (c *Cache) superseded(e *entry) bool {
	newer := c.lookup(&question{key: e.key(), net: e.network()}, c.now())
	return newer != nil && newer.stored > e.stored && newer.kind != kind(response.ServerError)
}

// endRefresh ends that. ok says whether what came may take e's place.
func (c *Cache) endRefresh(e *entry, ok bool) {
	e.fetch.end(ok, c.now(), c.failureRecheck)
	<-c.refreshes
}

// detached is ctx for work that outlives the query: it has the server, its own time and
// metadata, and no part in the query's path and place.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(context.WithoutCancel(ctx), plugin.PathKey{}, new(plugin.Path))
	ctx = context.WithValue(ctx, eventloop.PlaceKey{}, nil)
	return context.WithTimeout(metadata.ContextWithMetadata(ctx), refreshTime)
}

// copyLabels gives to the labels that from has now: those who are asked on behalf of a query see them, and what they set is
// not the query's, which may be over before.
func copyLabels(to, from context.Context) {
	for _, label := range metadata.Labels(from) {
		metadata.SetValueFunc(to, label, metadata.ValueFunc(from, label))
	}
}

// fetch asks the plugins below for e's answer, over UDP first and again over TCP if
// the answer was cut, and keeps what comes. Nothing is passed on. wasCut says that it was cut already.
//
// It runs where no server sees to panics: one of a plugin below is a failure.
func (c *Cache) fetch(ctx context.Context, w *noClient, r *dns.Msg, e *entry, n *counts, wasCut bool) (rw *ResponseWriter) {
	rw = &ResponseWriter{ResponseWriter: w, Cache: c, ctx: ctx, client: r, counts: n, silent: true, began: time.Now()}
	defer func() {
		if v := recover(); v != nil {
			recovered(e, v)
			rw.msg = nil
		}
	}()
	if e.freq != nil {
		rw.hits = e.freq.Hits()
	}
	var rcode int
	var err error
	if !wasCut {
		rw.remote = net.UDPAddrFromAddrPort(w.due)
		rcode, err = c.next(ctx, rw, r)
		wasCut = rw.msg != nil && rw.msg.Truncated
	}
	if wasCut {
		rw.remote = net.TCPAddrFromAddrPort(w.due)
		rcode, err = c.next(ctx, rw, r)
	}
	rw.ended(e, rcode, err)
	return rw
}

// recovered tells of v, with which a plugin below panicked while e's answer was fetched again.
func recovered(e *entry, v any) {
	clog.Errorf("Recovered from panic while fetching %s again: %v", wire.Text(e.packed.Key()), v)
	vars.Panic.Inc()
}

// ended notes how a fetch of e's answer has ended. What a validator below found to be bogus ends e, too: a zone that does not
// hold any more is not to be believed for what it said when it did.
func (w *ResponseWriter) ended(e *entry, rcode int, err error) {
	if err == nil && plugin.ClientWrite(rcode) {
		return
	}
	w.msg = nil
	if isBogus(err) {
		w.bogus = err
		e.fetch.bogus.Store(true)
	}
}

// isBogus reports whether an error says that an answer was not what its zone has signed: an extended error from DNSSEC
// Indeterminate to NSEC Missing (RFC 8914 §4.6 to §4.13).
func isBogus(err error) bool {
	var why edns.Explainer
	if !errors.As(err, &why) {
		return false
	}
	code, _ := why.ExtendedError()
	return code >= dns.ExtendedErrorCodeDNSSECIndeterminate && code <= dns.ExtendedErrorCodeNSECMissing
}

// fit reports whether what was fetched may take the place of an entry that has ended.
func (w *ResponseWriter) fit() bool {
	m := w.msg
	return m != nil && !m.Truncated && w.matched && w.replaces(m.Rcode, w.verdict)
}

// replaces reports whether a whole reply may take the place of an entry that has ended.
func (c *Cache) replaces(rcode int, v verdict) bool {
	if rcode != dns.RcodeSuccess && rcode != dns.RcodeNameError {
		return false
	}
	switch v.kind {
	case response.OtherError, response.Meta, response.Update:
		return false
	}
	return !c.preferPositive || v.kind == response.NoError && v.answers
}

// givenUp reports whether nobody is asked before e, which has ended, is used: somebody is being asked, or that has just failed.
func (c *Cache) givenUp(e *entry, now time.Time) bool {
	return c.failureRecheck > 0 && (e.fetch.running.Load() || e.fetch.paused(now))
}

// serveVerified asks the plugins below before e, which has ended and is kept for k, is used. It reports done if the
// client got their answer; else e is to be served. Who asks the same meanwhile waits for what they say.
func (c *Cache) serveVerified(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, a *plugin.WireAdapter, k *question, e *entry, n *counts) (rcode int, err error, done bool) { //nolint:staticcheck // done qualifies the others
	if c.givenUp(e, c.now()) {
		return 0, nil, false
	}
	if shares(&a.Query, k) && !inner(ctx) {
		mine, others := c.flights.claim(k)
		switch {
		case mine != nil:
			ended := &missFailure{old: true}
			defer func() { mine.over(ended) }()
			rcode, done, ended, err = c.verifies(ctx, w, r, e, n)
			return rcode, err, done
		case others != nil:
			newer, failed := c.joinVerification(ctx, others, k)
			switch {
			case failed == nil && newer == nil: // it is of no use to others
			case failed != nil && failed.old:
				return 0, nil, false
			case failed != nil:
				n.misses.Inc()
				return dns.RcodeServerFailure, failed.err, true
			default:
				n.misses.Inc()
				newer.restoreMetadata(ctx)
				reply(&a.Reply, &a.Query, newer, uint32(max(newer.remaining(c.now()), 0)))
				rcode, err = write(w, r, &a.Reply)
				return rcode, err, true
			}
		}
	}
	rcode, done, _, err = c.verifies(ctx, w, r, e, n)
	return rcode, err, done
}

// joinVerification waits for others who ask k, and returns what they have left in the cache, or how they have failed.
func (c *Cache) joinVerification(ctx context.Context, others eventloop.Exchange, k *question) (newer *entry, failed *missFailure) {
	patience := longest
	if c.verifyTimeout > 0 {
		patience = c.verifyTimeout
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	if !waitFor(ctx, others, timer) {
		return nil, &missFailure{old: true}
	}
	if m, ok := others.(*missEnding); ok && m.failed != nil {
		return nil, m.failed
	}
	now := c.now()
	if newer = c.lookup(k, now); newer != nil && newer.remaining(now) > 0 {
		return newer, nil
	}
	return nil, nil
}

// verifies is serveVerified for one alone. ended is what it is to those who wait for it: nil if there is an answer.
func (c *Cache) verifies(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, e *entry, n *counts) (rcode int, done bool, ended *missFailure, err error) {
	old := &missFailure{old: true}
	mine := e.fetch.begin()
	if c.failureRecheck > 0 && !mine {
		return 0, false, old, nil
	}
	end := func(ok bool) {
		if mine {
			e.fetch.end(ok, c.now(), c.failureRecheck)
		}
	}
	var rw *ResponseWriter
	if c.verifyTimeout == 0 {
		rw = c.verifyNow(ctx, w, r, e, n, end)
	} else if rw = c.verifyInTime(ctx, w, r, e, n, end); rw == nil {
		return 0, false, old, nil
	}
	if rw.bogus != nil {
		n.misses.Inc()
		return dns.RcodeServerFailure, true, &missFailure{err: rw.bogus}, rw.bogus
	}
	if !rw.fit() {
		return 0, false, old, nil
	}
	n.misses.Inc()
	return dns.RcodeSuccess, true, nil, w.WriteMsg(rw.msg)
}

// verifyNow fetches e's answer, however long that takes, and calls end, also if a plugin below panics. A reply
// that is cut is asked for again over TCP: the client could not do that, as it would get e then.
func (c *Cache) verifyNow(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, e *entry, n *counts, end func(bool)) *ResponseWriter {
	fits := false
	defer func() { end(fits) }()
	rw := &ResponseWriter{ResponseWriter: w, Cache: c, ctx: ctx, client: r, counts: n, silent: true, began: time.Now()}
	rcode, err := c.next(ctx, rw, r)
	if _, stream := w.RemoteAddr().(*net.TCPAddr); !stream && rw.msg != nil && rw.msg.Truncated {
		rw.remote = net.TCPAddrFromAddrPort(wire.PeerOf(w.RemoteAddr(), nil).Client)
		rcode, err = c.next(ctx, rw, r)
	}
	rw.ended(e, rcode, err)
	fits = rw.fit()
	return rw
}

// verifyInTime fetches e's answer in the background and waits for it for verifyTimeout; it
// is nil if that was not enough. The fetch goes on then, and may fill the cache.
func (c *Cache) verifyInTime(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, e *entry, n *counts, end func(bool)) *ResponseWriter {
	select {
	case c.refreshes <- struct{}{}:
	default:
		end(true)
		return nil
	}
	copied, nobody := r.Copy(), noClientFor(w)
	fetchCtx, cancel := detached(ctx)
	copyLabels(fetchCtx, ctx)
	fetched := make(chan *ResponseWriter, 1)
	go func() {
		defer func() { <-c.refreshes }()
		defer cancel()
		rw := c.fetch(fetchCtx, nobody, copied, e, n, false)
		end(rw.fit())
		fetched <- rw
	}()
	timer := time.NewTimer(c.verifyTimeout)
	defer timer.Stop()
	select {
	case rw := <-fetched:
		if wildcard := wildcardOf(fetchCtx); wildcard != "" && rw.fit() {
			metadata.SetValueFunc(ctx, "zone/wildcard", func() string { return wildcard })
		}
		return rw
	case <-timer.C:
		return nil
	}
}

// noClient is the writer of a query that nobody waits for. Its address is that of the client whose query made it due:
// what plugins below look up for it goes through the whole server, and acl, views and rules about clients judge it by
// that address.
type noClient struct {
	nonwriter.Unconnected
	due   netip.AddrPort
	local net.Addr
}

// noClientFor is the writer of a query that the one of w made due.
func noClientFor(w dns.ResponseWriter) *noClient {
	return &noClient{due: wire.PeerOf(w.RemoteAddr(), nil).Client, local: w.LocalAddr()}
}

func (n *noClient) LocalAddr() net.Addr         { return n.local }
func (n *noClient) RemoteAddr() net.Addr        { return net.UDPAddrFromAddrPort(n.due) }
func (n *noClient) Network() string             { return "udp" }
func (n *noClient) WriteMsg(*dns.Msg) error     { return nil }
func (n *noClient) Write(b []byte) (int, error) { return len(b), nil }
