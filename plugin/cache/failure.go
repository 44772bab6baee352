package cache

import (
	"errors"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// longestFailure bounds how long a failure is kept (RFC 9520 §3.2).
const longestFailure = 5 * time.Minute

// keepFailure keeps it that nobody answered q, which asks k, for the reason err. w is only worked on. Each failure that follows another one is kept for twice as long.
func (c *Cache) keepFailure(w *wire.Reply, q *wire.Query, k *question, err error, n *counts) {
	if k.odd || c.servfail < time.Second || c.disabled(response.ServerError, q.Lower()) {
		return
	}
	now := c.now()
	v := verdict{kind: response.ServerError, ttl: uint32(c.servfail / time.Second)}
	whom := ecsScope{net: k.net, exact: k.nets}
	if old := c.negative.former(&k.key, k.net); old != nil && old.failedBefore(now) {
		v.ttl = min(2*old.ttl, uint32(longestFailure/time.Second))
	}
	w.Begin(q)
	w.SetRcode(wire.ServFail)
	w.SetFlag(wire.FlagRA, edns.Resolves(err))
	w.SetNonAuthoritative(true) // it is the server's own word, and has no AA, as the failure itself had none
	c.keep(w, k, stored{verdict: v, scope: whom, ede: failureEDE(err), failed: true, since: q.Arrival}, now, n)
}

// failedBefore reports whether e says that nobody answered, not so long before now that this does not count any more.
func (e *entry) failedBefore(now time.Time) bool {
	return e.extra != nil && e.extra.failed && e.remaining(now) > -int(e.ttl)
}

// failureEDE is what later clients are told of a failure: that it is an old one, and why it failed if err knows.
func failureEDE(err error) []byte {
	b := slices.Clip(edeCachedError)
	var why edns.Explainer
	if errors.As(err, &why) {
		code, text := why.ExtendedError()
		b = edeOf(b, wire.AppendEDE(nil, code, text))
	}
	return b
}
