package recurse

import (
	"sync"
	"time"
)

// deadlines tells jobs that their time is over. All of a resolver have the same time, so they lie in the order of their
// ends, and one timer is enough: that of the first. It is not set anew when that one ends early, which nearly all do,
// but looks again when it fires. The zero value has none.
type deadlines struct {
	mu          sync.Mutex
	first, last *job
	timer       *time.Timer
	armed       bool // the timer will fire
	catching    bool // up, since it fired far too late
}

// The timer fires so late only where the machine stood still: suspended, or moved to another host. Then replies may not
// be read yet, and others are lost. catchUp is the time for both: clients that have repeated their queries wait for
// the same jobs, and a failure would be kept for more.
const (
	overslept = 200 * time.Millisecond
	catchUp   = time.Second
)

// patience is a job's place among the deadlines.
type patience struct {
	due        time.Time // zero if it has none
	prev, next *job
}

// add has j.late called at a time that is not before that of those who are there, but for a moment.
func (d *deadlines) add(j *job, due time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j.due, j.prev = due, d.last
	if d.last != nil {
		d.last.next = j
	} else {
		d.first = j
	}
	d.last = j
	if !d.armed {
		d.arm()
	}
}

// arm sets the timer for the first. mu is held.
func (d *deadlines) arm() {
	d.armed = true
	wait := time.Until(d.first.due)
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, d.fire)
	} else {
		d.timer.Reset(wait)
	}
}

// remove forgets j, if it is there.
func (d *deadlines) remove(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j.due.IsZero() {
		return
	}
	if j.prev != nil {
		j.prev.next = j.next
	} else {
		d.first = j.next
	}
	if j.next != nil {
		j.next.prev = j.prev
	} else {
		d.last = j.prev
	}
	j.patience = patience{}
}

// fire tells those whose time is over.
func (d *deadlines) fire() {
	now := time.Now()
	d.mu.Lock()
	if d.catching = !d.catching && d.first != nil && now.Sub(d.first.due) > overslept; d.catching {
		d.timer.Reset(catchUp)
		d.mu.Unlock()
		return
	}
	d.mu.Unlock()
	for {
		d.mu.Lock()
		j := d.first
		if j == nil || j.due.After(now) {
			if d.armed = false; j != nil {
				d.arm()
			}
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		d.remove(j)
		j.late()
	}
}
