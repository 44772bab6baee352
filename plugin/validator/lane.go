package validator

import (
	"context"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// ServeWire validates what the plugins below answer. What can be judged without work is judged at once; else the query is
// parked on a check, for signatures are no work for who reads sockets.
func (v *Validator) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if !v.covers(q.Lower()) {
		return plugin.NextWire(pluginName, v.Next, ctx, w, q)
	}
	if q.CD() {
		return plugin.EditWire(unchecked{v}, v.Next, ctx, w, q)
	}
	if c, ok := q.Awaited().(*check); ok && c.of(v, q) {
		c.answer(w, q)
		return wire.Done
	}
	asked := validate.Question{Name: string(q.Lower()), Type: q.Type()}
	if f, ok := v.known(asked); ok {
		v.counts.result(f)
		w.Fail(wire.ServFail, failed(f))
		return wire.Done
	}
	before := q.Mark()
	q.SetFlag(wire.FlagCD, true)
	q.SetFlag(wire.FlagAD, false)
	q.SetDO(udpSize)
	defer q.Restore(before)
	out := plugin.NextWire(pluginName, v.Next, ctx, w, q)
	if out != wire.Done || !w.Holds() {
		return out
	}
	trusted := v.live.Load()
	verdict, task := v.atOnce(trusted, asked, w, q)
	switch verdict {
	case nil:
		c := newCheck(ctx, v, asked, trusted, task, w, q)
		computed.add(q.Peer.Client.Addr(), asked.Name, &waiting{compute: c.compute, giveUp: c.End, place: eventloop.Parked})
		q.AwaitOwn(c)
		return wire.Park
	case &referred:
		q.Restore(before)
		v.edit(w, q, verdict)
	default:
		q.Restore(before)
		v.conclude(w, q, asked, verdict, netip.AddrPort{})
	}
	return wire.Done
}

// Verdicts that take no look at records.
var (
	referred = validate.Verdict{Finding: validate.Finding{Status: validate.Indeterminate}} // the client has to go on by himself
	vouched  = validate.Finding{Status: validate.Secure}
)

// atOnce is the verdict on what w holds, if it takes no work: it follows from RRsets that were found to be secure by what
// is trusted now, or is a referral, or all of it is known. Else it is nil, and the Task is what goes on, nil if the reply
// is malformed or was cut.
func (v *Validator) atOnce(trusted *trust, asked validate.Question, w *wire.Reply, q *wire.Query) (*validate.Verdict, *validate.Task) {
	if w.Vouched() == any(trusted) && v.negatives.none() {
		v.counts.took(0)
		return &validate.Verdict{Finding: vouched, Rcode: w.Rcode()}, nil
	}
	m, err := rrset.Parse(w.Message(q))
	if err != nil || w.Flag(wire.FlagTC) {
		return nil, nil
	}
	m.Rcode = w.Rcode()
	if !q.RD() && refers(m) {
		return &referred, nil
	}
	began := time.Now()
	task := validate.New(&trusted.conf, asked, m, v.now())
	if !q.RD() {
		task.Alone()
	}
	heard := false
	eachTeller(q, func(by advice.Teller) {
		task.Told(by.Zone)
		heard = true
	})
	if !task.Glance() {
		return nil, task
	}
	v.counts.took(time.Since(began))
	v.teach(trusted, asked, task.Verdict(), w.Count(wire.Answer) == 0, heard)
	return task.Verdict(), nil
}
