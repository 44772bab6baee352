// Package throttle keeps the server from being used against others, and from being used up: it bounds how many alike replies go to one
// network over UDP, where addresses can be forged, and how many queries one client may ask.
//
//	query ──queries──▶ plugins below ──reply──▶ kind, name ──responses──▶ client
//	           │                                                  │
//	           └── too many ──▶ nothing, or a reply with TC ◀── too many
//
// A client that is real comes back over TCP when it gets TC, and TCP is not bounded in replies. Nor is who shows a good cookie (RFC 7873), which proves the
// address as well. What is remembered of networks
// and clients lies in tables of fixed size. Both lanes charge the same accounts, when a query has been decided. Start at
// Throttle.ServeWire, kind.go and table.go.
package throttle

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "throttle"

// Throttle bounds replies and queries.
type Throttle struct {
	Next plugin.Handler

	*state
}

// state is what the handlers of one directive share.
type state struct {
	settings
	replies, queries *table
	slipCount        atomic.Uint64 // counts what was too much, for slip
	now              func() time.Time
}

func newState(s settings) *state {
	return &state{settings: s, replies: newTable(replyAccounts), queries: newTable(queryAccounts), now: time.Now}
}

// Name is the plugin's name.
func (t *Throttle) Name() string { return pluginName }

// WireSelf returns t.
func (t *Throttle) WireSelf() plugin.Handler { return t }

// Prompt implements plugin.Prompt.
func (t *Throttle) Prompt() bool { return true }

// reason is which bound was passed; metrics tell it.
type reason uint8

const (
	byQueries reason = iota
	byResponses
	byDenials
	byErrors
)

func (r reason) String() string { return [...]string{"queries", "responses", "denials", "errors"}[r] }

// action is what becomes of what is too much; metrics tell it.
type action string

const (
	pass   action = "observe"
	drop   action = "drop"
	slip   action = "slip"   // a reply with TC instead
	refuse action = "refuse" // REFUSED, for queries of clients that are who they say
)

// ServeDNS passes the query on if its client has not asked too much, and the reply if its network has not got too much.
func (t *Throttle) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	peer := wire.PeerOf(w.RemoteAddr(), nil)
	if len(r.Question) == 0 || plugin.Inner(ctx) || t.isExempt(peer.Client.Addr()) {
		return plugin.NextOrFailure(t.Name(), t.Next, ctx, w, r)
	}
	v := t.asker(ctx, &peer, plugin.CookieOf(ctx, r, peer.Client.Addr()))
	over := v.tooManyQueries()
	v.charge()
	if over {
		switch v.act(byQueries) {
		case pass:
		case refuse:
			return dns.RcodeRefused, nil
		case slip:
			return dns.RcodeSuccess, w.WriteMsg(truncated(r))
		default:
			return dns.RcodeSuccess, nil
		}
	}
	if !v.forgeable {
		return plugin.NextOrFailure(t.Name(), t.Next, ctx, w, r)
	}
	rcode, err := plugin.NextOrFailure(t.Name(), t.Next, ctx, &writer{Wrapped: plugin.Wrapped{ResponseWriter: w}, asker: v, query: r}, r)
	if plugin.ClientWrite(rcode) {
		return rcode, err
	}
	switch v.reply(fingerprint{kind: byErrors}) { // which the server will write
	case drop:
		return dns.RcodeSuccess, err
	case slip:
		if werr := w.WriteMsg(truncated(r)); err == nil {
			err = werr
		}
		return dns.RcodeSuccess, err
	}
	return rcode, err
}

// ServeWire does the same as ServeDNS. A query is charged when it is decided, or when it is parked: others are asked for
// it then, so it counts against those that come meanwhile, and it is not looked at again when that has ended. One that
// begins anew elsewhere is charged there.
func (t *Throttle) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if t.isExempt(q.Client.Addr()) {
		return plugin.NextWire(t.Name(), t.Next, ctx, w, q)
	}
	v := t.asker(ctx, &q.Peer, q.Cookie())
	first := q.Awaited() == nil
	over := first && v.tooManyQueries()
	if over && !t.observe {
		v.charge()
		v.refuse(w, q)
		return wire.Done
	}
	out := plugin.NextWire(t.Name(), t.Next, ctx, w, q)
	if first && (out == wire.Done || out == wire.Park) {
		v.charge()
		if over {
			v.act(byQueries)
		}
	}
	if out != wire.Done {
		return out
	}
	if !v.forgeable || !w.Holds() && !(w.Failed() && !plugin.ClientWrite(w.Rcode())) {
		return out
	}
	var room [wire.MaxName + 1]byte
	a, err := v.reply(fingerprintOf(w, q, room[:0])), w.Err()
	switch a {
	case drop:
		w.Drop()
		w.SetErr(err)
	case slip:
		writer := w.Writer()
		truncate(w, q)
		if writer != "" {
			w.SetWriter(writer) // that of the reply, as in the message lane
		}
		w.SetErr(err)
	}
	return out
}

// refuse decides a query that is too much.
func (v *asker) refuse(w *wire.Reply, q *wire.Query) {
	switch v.act(byQueries) {
	case refuse:
		w.Fail(wire.Refused, nil)
	case slip:
		truncate(w, q)
	default:
		w.Drop()
	}
}

// truncate makes w a reply without records that sends the client to TCP.
func truncate(w *wire.Reply, q *wire.Query) {
	w.DropOPT() // that of an upstream has no say in this one
	w.Begin(q)
	w.SetWriter(pluginName)
	w.SetFlag(wire.FlagTC, true)
}

// truncated is the same as a message.
func truncated(r *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetReply(r)
	m.Truncated = true
	return m
}

// asker is one query on its way.
type asker struct {
	*state
	ctx       context.Context
	client    netip.Addr
	forgeable bool   // client may be somebody else's: it came over plain UDP, without a good cookie
	at        uint32 // when it came, in milliseconds of a clock that only differences count of
}

func (s *state) asker(ctx context.Context, from *wire.Peer, cookie wire.CookieState) asker {
	at := from.Arrival
	if at.IsZero() {
		at = s.now()
	}
	forgeable := cookie != wire.CookieValid && plugin.Forgeable(ctx, from.Proto)
	return asker{s, ctx, from.Client.Addr(), forgeable, uint32(at.UnixMilli())}
}

// reply charges a reply to the client's network, and decides what becomes of it.
func (v *asker) reply(f fingerprint) action {
	rate := v.rate(f.kind)
	if rate == 0 || !v.replies.take(f.key(v.network(v.client)), account{rate, rate, v.window}, v.at) {
		return pass
	}
	return v.act(f.kind)
}

// act decides what becomes of what is too much, and counts it.
func (v *asker) act(r reason) action {
	a := drop
	switch {
	case v.observe:
		a = pass
	case r == byQueries && !v.forgeable:
		a = refuse
	case v.slip > 0 && v.slipCount.Add(1)%uint64(v.slip) == 0:
		a = slip
	}
	exceeded.WithLabelValues(metrics.WithServer(v.ctx), r.String(), string(a)).Inc()
	return a
}

// tooManyQueries reports whether the client has no query left. charge takes one from it.
func (v *asker) tooManyQueries() bool {
	return v.perClient.rate > 0 && v.queries.empty(clientKey(v.client, v.forgeable), v.perClient, v.at)
}

func (v *asker) charge() {
	if v.perClient.rate > 0 {
		v.queries.take(clientKey(v.client, v.forgeable), v.perClient, v.at)
	}
}
