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
}

// result is what came of one of them.
type result struct {
	m    *dns.Msg
	err  error
	from int
}

// run returns the first reply, or the last error if nobody replies. It waits until all are done with.
func (r *race) run(ctx context.Context, packet []byte, req *dns.Msg) (*dns.Msg, error) {
	if len(r.order) == 1 {
		r.last = r.order[0]
		m, err := r.last.query(ctx, packet, req)
		if err != nil {
			r.failed++
		}
		return m, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	results := make(chan result, len(r.order))
	began := make([]time.Time, 0, len(r.order)) // of those that were asked; zero once they are done
	timer := time.NewTimer(patience)
	defer timer.Stop()
	ask := func() {
		i, wait := len(began), patience
		if i == 0 && r.slow > 0 {
			wait = min(wait, r.slow)
		}
		timer.Reset(wait)
		began = append(began, time.Now())
		r.last = r.order[i]
		running.Go(func() {
			m, err := r.order[i].query(ctx, packet, req)
			results <- result{m, err, i}
		})
	}
	ask()
	for left := 1; ; {
		select {
		case <-timer.C:
			if len(began) == len(r.order) || ctx.Err() != nil {
				continue
			}
			if len(began) == 1 && r.slow > 0 {
				hedges.WithLabelValues(r.order[1].counts.to).Inc()
			}
			left++
			ask()
		case got := <-results:
			left--
			began[got.from] = time.Time{}
			if got.err == nil {
				r.last = r.order[got.from]
				r.outlast(began)
				return got.m, nil
			}
			r.failed++
			switch {
			case left > 0:
			case len(began) == len(r.order) || ctx.Err() != nil:
				return nil, got.err
			default:
				left++
				ask()
			}
		}
	}
}

// outlast notes of those that have not replied yet that they would have taken longer still.
func (r *race) outlast(began []time.Time) {
	for i, at := range began {
		if !at.IsZero() {
			r.order[i].latency.Note(2 * time.Since(at))
		}
	}
}
