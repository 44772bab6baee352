package proxy

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const minProbeInterval = 10 * time.Millisecond

// prober checks an upstream's health, on one goroutine that lives as long as the upstream is not heard of.
type prober struct {
	proxy  *Proxy
	ctx    context.Context // ends with stop
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	interval time.Duration
	running  bool
	stopped  bool
}

func (p *prober) init(proxy *Proxy) {
	p.proxy, p.interval = proxy, minProbeInterval
	p.ctx, p.cancel = context.WithCancel(context.Background())
}

// start sets the time between the end of a check and the next one.
func (p *prober) start(interval time.Duration) {
	p.mu.Lock()
	p.interval = max(interval, minProbeInterval)
	p.mu.Unlock()
}

// begin makes the prober check, at once and then again and again, unless it does already.
func (p *prober) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running || p.stopped {
		return
	}
	p.running = true
	interval := p.interval
	p.done.Go(func() { p.run(interval) })
}

// run checks until a check succeeds, or a query did meanwhile.
func (p *prober) run(interval time.Duration) {
	for p.check() != nil && p.ctx.Err() == nil {
		select {
		case <-p.ctx.Done():
		case <-time.After(jitter(interval)):
		}
		if p.proxy.Fails() == 0 {
			break
		}
	}
	p.mu.Lock()
	p.running = false
	p.mu.Unlock()
}

func (p *prober) check() error {
	if c, ok := p.proxy.health.(interface {
		check(context.Context, *Proxy) error
	}); ok {
		return c.check(p.ctx, p.proxy)
	}
	return p.proxy.health.Check(p.proxy)
}

// stop ends all checking, and waits for that.
func (p *prober) stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.cancel()
	p.done.Wait()
}

// jitter is d, longer or shorter by up to a tenth, so that probes of several servers do not march in step.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}
