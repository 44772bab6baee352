package forward

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// blockingRun carries out the course of one query that a goroutine waits for.
type blockingRun struct {
	course
	upstreamSet
	client   dns.ResponseWriter
	began    time.Time
	deadline time.Time

	x       proxy.Exchange
	ended   chan struct{} // the exchange
	query   []byte
	cookie  bool   // the client sent one
	reply   []byte // of the last attempt that had one
	numbers [16]int
}

var blockingRuns = sync.Pool{New: func() any {
	return &blockingRun{ended: make(chan struct{}, 1), query: make([]byte, 0, 512)}
}}

// newBlockingRun is a blockingRun for the query r. Its owner gives it back with free.
func (f *Forward) newBlockingRun(w dns.ResponseWriter, r *dns.Msg) *blockingRun {
	t := blockingRuns.Get().(*blockingRun)
	t.upstreamSet, t.client = upstreamSet{f, *f.upstreams.Load()}, w
	t.began = time.Now()
	_, stream := w.RemoteAddr().(*net.TCPAddr)
	t.course = f.newCourse(&t.upstreamSet, stream, nil, t.numbers[:0], len(t.upstreams))
	return t
}

// newCourse is a course through n upstreams for a query that came over a stream, or did not. loop is the one that it
// is served in, nil for none; numbers is memory.
func (f *Forward) newCourse(view courseView, stream bool, loop *eventloop.Loop, numbers []int, n int) course {
	_, chained := f.Next.(*Forward)
	c := course{rules: f.rules, stream: stream, handOn: chained, view: view, order: f.order(loop, view, numbers, n)}
	c.rules.attempts = 2 * n
	if f.maxAttempts != nil {
		c.rules.attempts = int(min(*f.maxAttempts, math.MaxInt32))
	}
	return c
}

// note does what an action says beside its kind.
func (f *Forward) note(upstreams []*proxy.Proxy, a action) {
	if a.broken {
		healthcheckBroken.Inc()
	}
	if a.probe >= 0 {
		f.doubt(upstreams[a.probe])
	}
}

// doubt notes that an upstream failed, and lets its health be checked.
func (f *Forward) doubt(up *proxy.Proxy) {
	if l := up.Latency(); l != nil {
		l.Missed()
	}
	if f.maxFails > 0 {
		up.Healthcheck()
	}
}

func (t *blockingRun) free() {
	t.course, t.upstreamSet, t.client = course{}, upstreamSet{}, nil
	blockingRuns.Put(t)
}

// run takes the query r through its course, and returns the last action. If that is answer, t.reply has the octets,
// with whatever id.
func (t *blockingRun) run(ctx context.Context, r *dns.Msg) action {
	t.deadline = t.began.Add(overall)
	if d, ok := ctx.Deadline(); ok && d.Before(t.deadline) {
		t.deadline = d
	}
	detour := advice.DetourOf(ctx)
	if detour != nil {
		advice.Sort(detour, t.order, func(i int) string { return t.upstreams[i].Addr() })
	}
	if err := t.pack(r); err != nil {
		return t.step(event{kind: failed, failure: local, err: err})
	}
	for ev := (event{kind: begun}); ; {
		ev.at, ev.gone = time.Since(t.began), ev.gone || over(ctx)
		a := t.step(ev)
		t.forward.note(t.upstreams, a)
		if a.do == answer && detour != nil {
			detour.Took(t.upstreams[t.asked].Addr())
		}
		if a.do != ask {
			return a
		}
		if a.after > 0 {
			pause(ctx, a.after)
		}
		before := time.Now()
		ev = t.ask(ctx, r, a)
		if gaveWay(t.x.GivesWay, ev.err) {
			t.forward.doubtInCrowd(t.upstreams[t.asked], int64(time.Since(epoch)))
			ev.failure, ev.gone = ours, true
		}
		if plugin.TrailFrom(ctx) != nil {
			t.noteAttempt(ctx, a, ev, time.Since(before))
		}
	}
}

// noteAttempt tells who explains a query how an attempt went.
func (t *blockingRun) noteAttempt(ctx context.Context, a action, ev event, took time.Duration) {
	up := t.upstreams[a.to]
	what := dns.RcodeToString[ev.rcode]
	switch {
	case ev.err != nil:
		what = ev.err.Error()
	case ev.tc:
		what += ", truncated"
	}
	plugin.Note(ctx, "%s over %s: %s after %s", up.Addr(), transportOf(up, a.stream), what, took.Round(time.Microsecond))
}

// pack packs r as it is sent: as it stands in the chain, with an id that proxy chooses, and without what is the
// client's and ours alone, or belongs into replies (RFC 1035 §4.1.1). A query that is signed cannot be changed.
func (t *blockingRun) pack(r *dns.Msg) error {
	m := *r
	m.Id = 0
	if r.Opcode == dns.OpcodeQuery && r.IsTsig() == nil {
		m.Authoritative, m.Truncated, m.RecursionAvailable, m.Zero = false, false, false, false
		m.Rcode &^= 0xF // of the rest the OPT record is the keeper
	}
	b, err := m.PackBuffer(t.query[:cap(t.query)])
	if err != nil {
		return err
	}
	t.query, t.cookie = b, false
	if opt := r.IsEdns0(); opt != nil && len(opt.Option) > 0 && r.IsTsig() == nil {
		t.query, t.cookie = replies.CutHopByHop(b)
	}
	return nil
}

// ask asks one upstream and waits for what comes of it.
func (t *blockingRun) ask(ctx context.Context, r *dns.Msg, a action) event {
	up := t.upstreams[a.to]
	metadata.SetValueFunc(ctx, "forward/upstream", up.Addr)
	t.x.Query, t.x.Stream, t.x.Deadline, t.x.Owner = t.query, a.stream, t.deadline, t
	t.x.Timeout, t.x.GivesWay = 0, eventloop.PlaceOf(ctx) // the upstream's time
	t.x.Cookie, t.x.Final = t.cookie && !a.again, a.again
	switch transfer := isTransfer(r); {
	case transfer && up.Protocol() == transport.QUIC:
		return t.notImplemented(r)
	case !transfer && a.second >= 0:
		return t.askHedged(ctx, r, a)
	}
	up.Begin(&t.x)
	select {
	case <-t.ended:
	case <-ctx.Done():
		up.Cancel(&t.x, ctx.Err())
		<-t.ended
	}
	if len(t.forward.taps) > 0 {
		t.tap(ctx, r, up, &t.x, t.replyIf(t.x.Err))
	}
	if err := t.x.Err; err != nil {
		return event{kind: failed, failure: failureOf(over(ctx), err), err: err}
	}
	facts := &t.x.Facts
	return event{kind: replied, rcode: facts.Rcode, empty: facts.Answers == 0, tc: facts.TC}
}

// isTransfer reports whether r asks for a zone.
func isTransfer(r *dns.Msg) bool {
	return len(r.Question) == 1 && (r.Question[0].Qtype == dns.TypeAXFR || r.Question[0].Qtype == dns.TypeIXFR)
}

// notImplemented is the reply of an upstream that is not asked: the messages of a transfer over QUIC all come on one
// stream (RFC 9250 §4.2), of which package proxy reads one.
func (t *blockingRun) notImplemented(r *dns.Msg) event {
	b, err := new(dns.Msg).SetRcode(r, dns.RcodeNotImplemented).PackBuffer(t.reply[:cap(t.reply)])
	if err != nil {
		return event{kind: failed, failure: local, err: err}
	}
	t.reply = b
	return event{kind: replied, rcode: dns.RcodeNotImplemented, empty: true}
}

// askHedged is ask with a second upstream in reserve.
func (t *blockingRun) askHedged(ctx context.Context, r *dns.Msg, a action) event {
	ra := t.forward.newHedge(t, t.upstreams[a.to], t.upstreams[a.second], a.slow, t.x)
	ra.begin()
	select {
	case <-t.ended:
	case <-ctx.Done():
		ra.cancel(ctx.Err())
		<-t.ended
	}
	if ra.err == nil {
		t.reply = append(t.reply[:0], ra.reply...)
	}
	up := ra.up[ra.won]
	metadata.SetValueFunc(ctx, "forward/upstream", up.Addr)
	if len(t.forward.taps) > 0 {
		for _, i := range ra.attempts() {
			x := &ra.x[i]
			if i == ra.won {
				t.tap(ctx, r, ra.up[i], x, t.replyIf(x.Err))
			} else {
				t.tap(ctx, r, ra.up[i], x, nil)
			}
		}
	}
	return ra.event(over(ctx))
}

// hedgeEnded implements hedger.
func (t *blockingRun) hedgeEnded(*hedge, *eventloop.Loop) { t.ended <- struct{}{} }

// gone implements hedger: what ends the wait cancels the hedge.
func (t *blockingRun) gone() bool { return false }

// EndExchange keeps the reply, and lets ask go on.
func (t *blockingRun) EndExchange(x *proxy.Exchange) {
	if x.Err == nil {
		t.reply = x.Facts.WithoutHopByHop(append(t.reply[:0], x.Reply...))
	}
	x.Reply = nil
	t.ended <- struct{}{}
}

// failureOf is whose fault an attempt's error is; gone says that nobody waits any more.
func failureOf(gone bool, err error) failureKind {
	switch {
	case errors.Is(err, proxy.ErrInvalidRequest):
		return local
	case errors.Is(err, proxy.ErrMismatch):
		return odd
	case gone, errors.Is(err, proxy.ErrBusy):
		return ours
	}
	return network
}

// over reports whether ctx has ended or is just about to: an attempt that ends at its deadline may be quicker.
func over(ctx context.Context) bool {
	d, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(d)
}

// replyIf is the reply of the attempt that has just ended, nil if it failed.
func (t *blockingRun) replyIf(failed error) []byte {
	if failed != nil {
		return nil
	}
	return t.reply
}

// tap tells the taps about an attempt that has just ended, with the reply if one came.
func (t *blockingRun) tap(ctx context.Context, r *dns.Msg, up *proxy.Proxy, x *proxy.Exchange, reply []byte) {
	a := attempt{
		began: t.began, ended: time.Now(), own: x.Local, upstream: up.Addr(), proto: x.Proto, scheme: up.Protocol(),
		query: append([]byte(nil), t.query...),
	}
	binary.BigEndian.PutUint16(a.query, r.Id)
	if reply != nil {
		a.reply = append([]byte(nil), reply...)
		binary.BigEndian.PutUint16(a.reply, r.Id)
	}
	for _, to := range t.forward.taps {
		for _, m := range a.frames(to.raw) {
			to.TapMessageWithMetadata(ctx, m, request.Request{W: t.client, Req: r})
		}
	}
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
