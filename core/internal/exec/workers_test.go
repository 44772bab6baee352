package exec

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
)

type taskFunc func()

func (f taskFunc) run() { f() }

// idlers is how many workers are idle, and how many are counted at all.
func (w *workers) idlers() (idle, all int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.idle), w.n
}

func TestWorkersAreBounded(t *testing.T) {
	w := newWorkers(3)
	release := make(chan struct{})
	var atWork atomic.Int32
	var done sync.WaitGroup
	begin := taskFunc(func() {
		if n := atWork.Add(1); n > 3 {
			t.Errorf("%d at work", n)
		}
		<-release
		atWork.Add(-1)
		done.Done()
	})
	done.Add(3)
	for range 3 {
		if !w.try(begin) {
			t.Fatal("refused below the bound")
		}
	}
	if w.try(taskFunc(func() {})) {
		t.Error("taken beyond the bound")
	}
	done.Add(20)
	var brought sync.WaitGroup
	for range 20 {
		brought.Go(func() { w.do(begin) })
	}
	close(release)
	brought.Wait()
	done.Wait()
}

// TestWorkersEnter has goroutines of others wait in the workers' places.
func TestWorkersEnter(t *testing.T) {
	w := newWorkers(2)
	ctx := t.Context()
	for range 2 {
		if !w.enter(ctx) {
			t.Fatal("refused below the bound")
		}
	}
	if w.try(taskFunc(func() {})) {
		t.Error("taken beyond the bound")
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if w.enter(over) {
		t.Error("entered beyond the bound")
	}
	late, cancel := context.WithCancel(ctx)
	go cancel()
	if w.enter(late) {
		t.Error("entered beyond the bound after it waited")
	}
	in := make(chan bool)
	go func() { in <- w.enter(ctx) }()
	w.leave()
	if !<-in {
		t.Error("refused though there is room")
	}
	w.leave()
	ran := make(chan struct{})
	if !w.try(taskFunc(func() { close(ran) })) {
		t.Error("refused below the bound")
	}
	<-ran
	w.limit(1)
	if w.try(taskFunc(func() {})) {
		t.Error("taken beyond the new bound")
	}
	w.leave()
	w.limit(0)
	for range 100 {
		if !w.enter(ctx) {
			t.Fatal("0 is a bound")
		}
	}
}

// Who waits for a place gets one when there may be more, too.
func TestMoreWorkersLater(t *testing.T) {
	w := newWorkers(1)
	w.begin()
	ran := make(chan struct{})
	go w.do(taskFunc(func() { close(ran) }))
	w.limit(2)
	<-ran
	w.begin() // who waits already is not refused
	w.begin()
	if w.try(taskFunc(func() {})) {
		t.Error("taken beyond the bound")
	}
}

// The worker that was last at work gets the next task; beyond those that are kept, they end.
func TestIdleWorkers(t *testing.T) {
	w := newWorkers(0)
	w.keepIdle = 2
	together := func(n int) {
		t.Helper()
		release := make(chan struct{})
		for range n {
			if !w.try(taskFunc(func() { <-release })) {
				t.Fatal("refused")
			}
		}
		if idle, all := w.idlers(); all-idle != n {
			t.Errorf("%d of %d workers are idle while %d work", idle, all, n)
		}
		close(release)
		eventually.Holds(t, "all are idle or gone", func() bool {
			idle, all := w.idlers()
			return idle == all
		})
	}
	together(5)
	if idle, _ := w.idlers(); idle != 2 {
		t.Errorf("%d are kept", idle)
	}
	last := w.idle[1]
	together(1)
	if idle, _ := w.idlers(); idle != 2 || w.idle[1] != last {
		t.Errorf("%d are kept, and another one got the task", idle)
	}
}

// A task may end its goroutine; its place is free then.
func TestTaskEndsItsGoroutine(t *testing.T) {
	w := newWorkers(1)
	for range 3 {
		w.do(taskFunc(runtime.Goexit))
	}
	eventually.Holds(t, "no worker is left", func() bool {
		_, all := w.idlers()
		return all == 0
	})
}

// Many who enter, leave, give up and bring tasks get by without an end, and never are there more than may be.
func TestCrowdOfWorkers(t *testing.T) {
	const most = 4
	w := newWorkers(most)
	var atWork, served atomic.Int64
	work := func() {
		if n := atWork.Add(1); n > most {
			t.Errorf("%d at work", n)
		}
		runtime.Gosched()
		atWork.Add(-1)
		served.Add(1)
	}
	const each = wantAtLeast / 4
	var all sync.WaitGroup
	all.Add(each)
	for range each {
		go w.do(taskFunc(func() { work(); all.Done() }))
		all.Go(func() {
			if !w.enter(context.Background()) {
				t.Error("refused")
				return
			}
			work()
			w.leave()
		})
		ctx, cancel := context.WithCancel(context.Background())
		all.Go(cancel)
		all.Go(func() {
			if w.enter(ctx) {
				work()
				w.leave()
			}
		})
	}
	all.Wait()
	if n := served.Load(); n < 2*each {
		t.Errorf("%d were served", n)
	}
	eventually.Holds(t, "all places are free", func() bool {
		idle, all := w.idlers()
		return idle == all
	})
}

// Not all may wait for a place to wait: many streams of many connections would.
func TestEnterRefusesWhatIsTooMuch(t *testing.T) {
	w := newWorkers(1)
	if !w.enter(t.Context()) {
		t.Fatal("refused")
	}
	entered := make(chan bool)
	for range wantAtLeast {
		go func() { entered <- w.enter(context.Background()) }()
	}
	eventually.Holds(t, "all but one want a place", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.want == wantAtLeast
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	more := make(chan bool, 1)
	go func() { more <- w.enter(ctx) }()
	select {
	case ok := <-more:
		if ok {
			t.Error("one more was let in")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("one more waits")
	}
	for range wantAtLeast {
		w.leave()
		if !<-entered {
			t.Error("one that waited was refused")
		}
	}
	if w.want != 0 {
		t.Errorf("%d still want a place", w.want)
	}
}
