package grpc

import (
	"context"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// race asks a second upstream, too, if the first one takes longer than it nearly always does. The first reply wins.
type race struct {
	first, second *Proxy
	slow          time.Duration
	both          bool // the second one was asked
}

// result is what came of one of the two.
type result struct {
	m    *dns.Msg
	err  error
	from *Proxy
}

// run returns the first reply, or the last error if nobody replies, and whose it is. It waits until both are done with.
func (r *race) run(ctx context.Context, packet []byte, req *dns.Msg) (*dns.Msg, *Proxy, error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	began := time.Now()
	results := make(chan result, 2)
	ask := func(p *Proxy) {
		running.Go(func() {
			m, err := p.query(ctx, packet, req)
			results <- result{m, err, p}
		})
	}
	ask(r.first)
	timer := time.NewTimer(r.slow)
	defer timer.Stop()
	for left := 1; ; {
		select {
		case <-timer.C:
			r.both = true
			left++
			hedges.WithLabelValues(r.second.counts.to).Inc()
			ask(r.second)
		case got := <-results:
			if left--; got.err == nil || left == 0 {
				if left > 0 && got.from == r.second { // the first one would have taken longer still
					r.first.latency.Note(2 * time.Since(began))
				}
				return got.m, got.from, got.err
			}
		}
	}
}
