package recurse

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// empty waits until no job has a deadline.
func (d *deadlines) empty(wait time.Duration) bool {
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		d.mu.Lock()
		none := d.first == nil && d.last == nil
		d.mu.Unlock()
		if none {
			return true
		}
	}
	return false
}

// Each of many who come one after the other is told at the end of its own time, and no sooner; one that nobody waits for
// any more goes on for as long again, and then leaves nothing behind.
func TestDeadlines(t *testing.T) {
	const timeout = 300 * time.Millisecond
	r := silent(t, func(s *settings) { s.timeout = timeout })
	for range 2 { // the second time the timer has fired before
		var all sync.WaitGroup
		for i := range 20 {
			began := time.Now()
			j, _ := r.beginFor(queryFrom(t, "192.0.2.1", fmt.Sprintf("n%d.example.org.", i)), nil, nil, unlooked)
			all.Go(func() {
				err := j.wait(context.Background())
				if took := time.Since(began); err != nil || took < timeout-time.Millisecond || took > 10*timeout || j.result.Code != 22 {
					t.Errorf("%d: told after %v: %+v %v", i, took, j.result, err)
				}
			})
			time.Sleep(5 * time.Millisecond)
		}
		all.Wait()
		if !r.deadlines.empty(10 * timeout) {
			t.Fatal("jobs still have a deadline")
		}
		r.conf.Stores.Failures.ForgetIf(func(string, uint16) bool { return true })
	}
}

// Jobs whose time was over while the machine stood still have a moment to read replies and to ask anew.
func TestDeadlinesWhileTheMachineStoodStill(t *testing.T) {
	d, began := new(deadlines), time.Now()
	for range 3 {
		d.add(new(job), began.Add(-time.Minute))
	}
	if !d.empty(20 * catchUp) {
		t.Fatal("jobs still have a deadline")
	}
	if took := time.Since(began); took < catchUp {
		t.Errorf("told after %v", took)
	}
}

// Those in the middle and at both ends are taken out, and the others still have their turn.
func TestDeadlinesThatEndEarly(t *testing.T) {
	d, due := new(deadlines), time.Now().Add(time.Hour)
	jobs := make([]*job, 5)
	for i := range jobs {
		jobs[i] = new(job)
		d.add(jobs[i], due)
	}
	t.Cleanup(func() { d.timer.Stop() })
	for _, i := range []int{2, 0, 4, 4} {
		d.remove(jobs[i])
	}
	if d.first != jobs[1] || d.last != jobs[3] || jobs[1].next != jobs[3] || jobs[3].prev != jobs[1] || jobs[1].prev != nil || jobs[3].next != nil {
		t.Error("the list is broken")
	}
	d.remove(jobs[3])
	if d.remove(jobs[1]); d.first != nil || d.last != nil {
		t.Error("somebody is left")
	}
}
