package forward

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// task carries out the course of one query that a goroutine waits for.
type task struct {
	course
	forward   *Forward
	client    dns.ResponseWriter
	upstreams []*proxy.Proxy
	began     time.Time
	deadline  time.Time

	x       proxy.Exchange
	ended   chan struct{} // the exchange
	query   []byte
	reply   []byte // of the last attempt that had one
	numbers [16]int
}

var tasks = sync.Pool{New: func() any {
	return &task{ended: make(chan struct{}, 1), query: make([]byte, 0, 512)}
}}

// newTask is a task for the query r. Its owner gives it back with free.
func (f *Forward) newTask(w dns.ResponseWriter, r *dns.Msg) *task {
	t := tasks.Get().(*task)
	t.forward, t.client, t.upstreams = f, w, *f.upstreams.Load()
	t.began = time.Now()
	_, stream := w.RemoteAddr().(*net.TCPAddr)
	t.course = f.newCourse(t, stream, t.numbers[:0], len(t.upstreams))
	return t
}

// newCourse is a course through n upstreams for a query that came over a stream, or did not. numbers is memory for it.
func (f *Forward) newCourse(world world, stream bool, numbers []int, n int) course {
	_, chained := f.Next.(*Forward)
	c := course{rules: f.rules, stream: stream, handOn: chained, world: world, order: f.policy.Order(numbers, n)}
	c.rules.attempts = 2 * n
	if f.maxAttempts != nil {
		c.rules.attempts = int(*f.maxAttempts)
	}
	return c
}

// note does what an action says beside its verb.
func (f *Forward) note(upstreams []*proxy.Proxy, a action) {
	if a.broken {
		healthcheckBroken.Inc()
	}
	if a.probe >= 0 && f.maxFails > 0 {
		upstreams[a.probe].Healthcheck()
	}
}

func (t *task) free() {
	t.course, t.forward, t.client, t.upstreams = course{}, nil, nil, nil
	tasks.Put(t)
}

func (t *task) down(up int) bool { return t.upstreams[up].Down(t.forward.maxFails) }
func (t *task) chance(n int) int { return rand.IntN(n) }

// run takes the query r through its course, and returns the last action. If that is answer, t.reply has the octets,
// with whatever id.
func (t *task) run(ctx context.Context, r *dns.Msg) action {
	t.deadline = t.began.Add(overall)
	if d, ok := ctx.Deadline(); ok && d.Before(t.deadline) {
		t.deadline = d
	}
	if err := t.pack(r); err != nil {
		return t.step(event{kind: failed, fault: local, err: err})
	}
	for ev := (event{kind: begun}); ; {
		ev.at, ev.gone = time.Since(t.began), over(ctx)
		a := t.step(ev)
		t.forward.note(t.upstreams, a)
		if a.do != ask {
			return a
		}
		if a.after > 0 {
			pause(ctx, a.after)
		}
		ev = t.ask(ctx, r, a)
	}
}

// pack packs r as it is sent: as it stands in the chain, with an id that proxy chooses.
func (t *task) pack(r *dns.Msg) error {
	m := *r
	m.Id = 0
	b, err := m.PackBuffer(t.query[:cap(t.query)])
	if err == nil {
		t.query = b
	}
	return err
}

// ask asks one upstream and waits for what comes of it.
func (t *task) ask(ctx context.Context, r *dns.Msg, a action) event {
	up := t.upstreams[a.to]
	metadata.SetValueFunc(ctx, "forward/upstream", up.Addr)
	t.x.Query, t.x.Stream, t.x.Deadline, t.x.Owner = t.query, a.stream, t.deadline, t
	t.x.Timeout = 0 // the upstream's
	up.Begin(&t.x)
	select {
	case <-t.ended:
	case <-ctx.Done():
		up.Cancel(&t.x, ctx.Err())
		<-t.ended
	}
	if len(t.forward.taps) > 0 {
		t.tap(ctx, r, up)
	}
	if err := t.x.Err; err != nil {
		return event{kind: failed, fault: faultOf(over(ctx), err), err: err}
	}
	facts := &t.x.Facts
	return event{kind: replied, rcode: facts.Rcode, empty: facts.Answers == 0, tc: facts.TC}
}

// EndExchange keeps the reply, and lets ask go on.
func (t *task) EndExchange(x *proxy.Exchange) {
	if x.Err == nil {
		t.reply = append(t.reply[:0], x.Reply...)
	}
	x.Reply = nil
	t.ended <- struct{}{}
}

// faultOf is whose fault an attempt's error is; gone says that nobody waits any more.
func faultOf(gone bool, err error) fault {
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

// tap tells the taps about the attempt that has just ended.
func (t *task) tap(ctx context.Context, r *dns.Msg, up *proxy.Proxy) {
	a := attempt{
		began: t.began, ended: time.Now(), own: t.x.Local, upstream: up.Addr(), proto: t.x.Proto,
		query: append([]byte(nil), t.query...),
	}
	binary.BigEndian.PutUint16(a.query, r.Id)
	if t.x.Err == nil {
		a.reply = append([]byte(nil), t.reply...)
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
