package grpc

import (
	"context"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// patience is how long an upstream is waited for before the next one is asked, too: one that hangs is not to take all
// the time that a query has.
const patience = 2 * time.Second

// race asks upstreams, the next one as soon as those before have failed, or take too long. The first reply wins.
type race struct {
	order []*Proxy
	slow  time.Duration // how long the first one may take if that is less than patience; 0: as long as others

	last   *Proxy // that was asked
	failed int

	began   []time.Time // of those that were asked; zero once they are done
	results chan result
	timer   *time.Timer // until the next one is asked
	running sync.WaitGroup
}

// result is what came of one of them.
type result struct {
	m    *dns.Msg
	err  error
	from int
}

// run returns the first reply, or the last error if nobody replies. It waits until all are done with.
func (r *race) run(ctx context.Context, packet []byte, req *dns.Msg) (m *dns.Msg, err error) {
	if len(r.order) == 1 {
		r.last = r.order[0]
		if m, err = r.last.query(ctx, packet, req); err != nil {
			r.failed++
		}
		return m, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer r.running.Wait()
	defer cancel()
	r.results = make(chan result, len(r.order))
	r.timer = time.NewTimer(patience)
	defer r.timer.Stop()
	r.ask(ctx, packet, req)
	for left := 1; left > 0; {
		select {
		case <-r.timer.C:
			if !r.hasMore(ctx) {
				continue
			}
			if len(r.began) == 1 && r.slow > 0 {
				hedges.WithLabelValues(r.order[1].counts.to).Inc()
			}
			left++
			r.ask(ctx, packet, req)
		case got := <-r.results:
			left--
			r.began[got.from] = time.Time{}
			if got.err == nil {
				r.last = r.order[got.from]
				r.outlast()
				return got.m, nil
			}
			r.failed++
			if err = got.err; left == 0 && r.hasMore(ctx) {
				left++
				r.ask(ctx, packet, req)
			}
		}
	}
	return nil, err
}

// hasMore reports whether there is another upstream to be asked, and time for it.
func (r *race) hasMore(ctx context.Context) bool {
	return len(r.began) < len(r.order) && ctx.Err() == nil
}

// ask asks the next upstream.
func (r *race) ask(ctx context.Context, packet []byte, req *dns.Msg) {
	i, wait := len(r.began), patience
	if i == 0 && r.slow > 0 {
		wait = min(wait, r.slow)
	}
	r.timer.Reset(wait)
	r.began = append(r.began, time.Now())
	r.last = r.order[i]
	r.running.Go(func() {
		m, err := r.order[i].query(ctx, packet, req)
		r.results <- result{m, err, i}
	})
}

// outlast notes of those that have not replied yet that they were outlasted.
func (r *race) outlast() {
	for i, at := range r.began {
		if !at.IsZero() {
			r.order[i].latency.Outlasted(time.Since(at))
		}
	}
}
