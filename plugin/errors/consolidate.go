package errors

import (
	"regexp"
	"sync"
	"time"
)

// pattern counts errors that look alike. A period begins with the first of them; when it ends, one line tells how many
// there were.
type pattern struct {
	expr      *regexp.Regexp
	period    time.Duration
	showFirst bool                             // the first one of a period is logged at once
	log       func(format string, args ...any) // at the pattern's level

	mu      sync.Mutex
	counted int         // in the current period
	timer   *time.Timer // of the current period, nil if there is none
	stopped bool
}

// count counts an error. first says that it is the first one of a period. It is not counted, and ok is false, after stop.
func (p *pattern) count() (first, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false, false
	}
	p.counted++
	if p.counted == 1 {
		p.timer = time.AfterFunc(p.period, p.flush)
	}
	return p.counted == 1, true
}

// flush ends the current period.
func (p *pattern) flush() {
	p.mu.Lock()
	n := p.counted
	p.counted, p.timer = 0, nil
	p.mu.Unlock()
	if n > 1 || n == 1 && !p.showFirst {
		p.log("%d errors like '%s' occurred in last %s", n, p.expr, p.period)
	}
}

// stop ends the current period now, and counts nothing any more.
func (p *pattern) stop() {
	p.mu.Lock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.flush()
}
