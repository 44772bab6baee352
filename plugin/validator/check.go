package validator

import (
	"context"
	"net"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// check judges one reply of the wire lane, while its query is parked:
//
//	ServeWire ──▶ queue.add ──▶ check.compute ──▶ over
//	                                  └─ keys are missing, or it is bogus ──▶ check.inquire ──▶ over
//
// What asks others has a goroutine of its own: an inquiry as in the message lane, which begins with the reply that is
// there.
type check struct {
	eventloop.Ending
	*Validator
	ctx   context.Context // the block's
	asked validate.Question
	below wire.Copied    // what the plugins below answered
	task  *validate.Task // that judges it, nil if it is malformed or was cut
	trust *trust         // that it judges by
	name  string         // as the client wrote it
	rd    bool
	query []byte // as it was asked below
	peer  wire.Peer
	began time.Time // when the query came
	until time.Time // its deadline, zero if it has none
	told  advice.Source
	spent advice.Cost // for what is below
	most  advice.Cost // that there may be; see advice.Purse

	// Set before the Ending ends, and not changed after that.
	verdict *validate.Verdict // nil after a panic, or if it gave way to others
	reply   *dns.Msg          // in place of below, if others were asked
}

// newCheck is a check of what w holds, the reply to q as it was asked below. t judges it by what is trusted, nil if
// nothing can.
func newCheck(ctx context.Context, v *Validator, asked validate.Question, trusted *trust, t *validate.Task, w *wire.Reply, q *wire.Query) *check {
	c := &check{Validator: v, ctx: ctx, asked: asked, trust: trusted, task: t, name: string(q.Name()), rd: q.RD(), peer: q.Peer, until: q.Deadline()}
	c.below = w.Copied()
	c.query = q.Append(make([]byte, 0, q.Len()+optLen), q.ID())
	if c.began = q.Arrival; c.began.IsZero() {
		c.began = time.Now()
	}
	if by, is := q.Awaited().(advice.Witness); is {
		by.EachTeller(c.told.Add)
		c.spent, c.most = by.Spent()
	}
	return c
}

// eachTeller calls f with each who told what q was answered with, as far as that is known.
func eachTeller(q *wire.Query, f func(advice.Teller)) {
	if by, is := q.Awaited().(advice.Witness); is {
		by.EachTeller(f)
	}
}

// optLen is the octets of an OPT record without options.
const optLen = 11

// of reports whether c is v's, and for q: others that wait for it most often find the answer in a cache.
func (c *check) of(v *Validator, q *wire.Query) bool {
	return c.Validator == v && c.asked.Type == q.Type() && c.name == string(q.Name()) && c.rd == q.RD()
}

// answer makes w the reply to q when the check is over.
func (c *check) answer(w *wire.Reply, q *wire.Query) {
	switch {
	case c.verdict == nil:
		w.Fail(wire.ServFail, nil)
		return
	case c.reply == nil:
		w.Paste(&c.below)
	default:
		if err := w.SetMsgOPT(c.reply); err != nil {
			w.Fail(wire.ServFail, plugin.Error(pluginName, err))
			return
		}
		w.SetNonAuthoritative(c.below.NonAuthoritative())
	}
	c.conclude(w, q, c.asked, c.verdict, c.told.Of(c.verdict.Name).Server)
}

// compute judges the reply with what is known.
func (c *check) compute() {
	defer c.recovered()
	var missing []validate.Question
	if c.task != nil {
		if missing = c.step(c.task); len(missing) == 0 && c.task.Verdict().Status != validate.Bogus {
			c.verdict = c.task.Verdict()
			c.teach(c.trust, c.asked, c.verdict, c.below.Count(wire.Answer) == 0, c.told.Told() > 0)
			c.End()
			return
		}
	}
	go c.inquire(missing)
}

// inquire goes on: it asks for what is missing, and for what is bogus once more.
func (c *check) inquire(missing []validate.Question) {
	defer c.recovered()
	ctx := c.ctx
	if !c.until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.until)
		defer cancel()
	}
	m := new(dns.Msg)
	if m.Unpack(c.query) != nil {
		c.End()
		return
	}
	var below wire.Reply
	below.Paste(&c.below)
	reply, err := below.Msg(m)
	if err == nil {
		below.AppendOPT(reply, m)
	}
	i := &inquiry{
		Validator: c.Validator, client: ctx, ctx: ctx, place: eventloop.Parked, w: &absent{peer: c.peer}, q: c.asked, query: m,
		sources: map[validate.Question]*advice.Source{c.asked: &c.told},
	}
	c.told.Purse = &i.purse
	i.purse.Pay(c.spent, c.most)
	defer i.hurry(c.began)()
	if err != nil || reply.Truncated {
		if again, _, _ := i.stream(c.asked, m); again != nil {
			reply = again
		}
	}
	if reply != nil {
		verdict, judged := i.judgeOn(c.trust, c.task, missing, reply)
		if !i.gaveWay {
			c.verdict, c.reply = verdict, judged
		}
	}
	c.End()
}

// recovered ends a check that has panicked: the panic costs one query, and not the process.
func (c *check) recovered() {
	if v := recover(); v != nil {
		logger.Errorf("Recovered from panic while validating %s: %v", rrset.Text(c.asked.Name), v)
		vars.Panic.Inc()
		c.verdict = nil
		c.End()
	}
}

// absent is the writer of a query that is asked for a client who waits elsewhere.
type absent struct {
	nonwriter.Unconnected
	peer wire.Peer
}

func (n *absent) LocalAddr() net.Addr         { return n.peer.LocalAddr() }
func (n *absent) RemoteAddr() net.Addr        { return n.peer.RemoteAddr() }
func (n *absent) Network() string             { return n.peer.Proto.String() }
func (n *absent) WriteMsg(*dns.Msg) error     { return nil }
func (n *absent) Write(b []byte) (int, error) { return len(b), nil }
