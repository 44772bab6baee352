// Package up asks again and again whether something that is down is up again. A Probe runs at most one goroutine,
// which ends when the function has succeeded. Start at Probe.Do.
package up

import (
	"sync"
	"time"
)

// Func checks once. Nil means up.
type Func func() error

// Probe runs checks, one at a time, on a goroutine of its own. Any number of goroutines may use it. The zero Probe is
// as good as a new one.
//
// The embedded Mutex guards the Probe's own fields. A caller may hold it to keep checks from starting, but must not
// call a method of the Probe then.
type Probe struct {
	sync.Mutex
	interval time.Duration // 0 until Start
	running  bool          // a goroutine is checking
	stopped  bool          // for good
	stop     chan struct{} // closed with stopped; nil until somebody needs it
}

// New returns a Probe. It needs Start before it repeats checks.
func New() *Probe { return new(Probe) }

// Start sets how long the Probe waits between the end of one check and the beginning of the next one. It starts no
// check; one that runs keeps its interval.
func (p *Probe) Start(interval time.Duration) {
	p.Lock()
	defer p.Unlock()
	p.interval = interval
}

// Do begins to run f, at once and then after every interval, until it returns nil or the Probe is stopped. It returns
// without waiting. Nothing happens if checks are running already, with whatever Func, or the Probe is stopped. Without
// an interval f runs once.
func (p *Probe) Do(f Func) {
	p.Lock()
	defer p.Unlock()
	if p.running || p.stopped {
		return
	}
	p.running = true
	go p.run(f, p.interval, p.stopping())
}

// Stop ends the Probe for good: nothing that runs is repeated, and Do does nothing from now on. It does not wait for
// a check that is running, so that a check may call it. Stopping twice does no harm.
func (p *Probe) Stop() {
	p.Lock()
	defer p.Unlock()
	if !p.stopped {
		p.stopped = true
		close(p.stopping())
	}
}

// stopping returns the channel that Stop closes. The lock must be held.
func (p *Probe) stopping() chan struct{} {
	if p.stop == nil {
		p.stop = make(chan struct{})
	}
	return p.stop
}

// run checks until f succeeds. Do starts it; it ends after the check during which Stop was called.
func (p *Probe) run(f Func, interval time.Duration, stop <-chan struct{}) {
	defer func() {
		p.Lock()
		p.running = false
		p.Unlock()
	}()
	for f() != nil && interval > 0 {
		select {
		case <-stop:
			return
		case <-time.After(interval):
		}
		select {
		case <-stop: // at the very moment at which the interval ended
			return
		default:
		}
	}
}
