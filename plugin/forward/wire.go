package forward

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// ServeWire implements plugin.WireHandler. A query is parked on a pendingReply, and answered with the octets that came
// when it is run again.
func (f *Forward) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if !f.zones.Match(q) || f.parentSide && f.ofParent(q) {
		return plugin.NextWire(pluginName, f.Next, ctx, w, q)
	}
	if len(f.taps) > 0 {
		return wire.Unpack // each frame is told with the message
	}
	r, own := f.pendingReplyOf(q), false
	if r == nil {
		if f.referrer != nil && !q.RD() && f.referrer.Refer(w, q) {
			return wire.Done
		}
		if q.Crowded() {
			return wire.Park // awaiting nothing
		}
		if f.maxConcurrent > 0 && f.concurrent.Add(1) > f.maxConcurrent {
			f.concurrent.Add(-1)
			maxConcurrentRejects.Inc()
			w.Fail(wire.Refused, f.refusal())
			return wire.Done
		}
		r, own = f.newPendingReply(q), true
	}
	if !r.Over() {
		if own {
			q.AwaitOwn(r)
		} else {
			q.Await(r)
		}
		return wire.Park
	}
	switch r.do {
	case handOn:
		return plugin.NextWire(pluginName, f.Next, ctx, w, q)
	case giveWay, fail:
		if r.do == giveWay && !q.Stream() {
			q.Await(nil)
			return wire.Park
		}
		w.Fail(r.rcode, r.err)
		return wire.Done
	}
	if !w.LoadMessage(q, r.reply) {
		if err := load(w, r.reply); err != nil {
			w.Fail(wire.ServFail, err)
			return wire.Done
		}
	}
	w.SetWriter(pluginName)
	return wire.Done
}

// WireSelf implements plugin.WireHandler.
func (f *Forward) WireSelf() plugin.Handler { return f }

// load makes w an unusual reply.
func load(w *wire.Reply, reply []byte) error {
	m := new(dns.Msg)
	if err := wire.UnpackInto(m, reply); err != nil {
		return err
	}
	return w.SetMsgOPT(m)
}
