package exec

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/service"

	"github.com/miekg/dns"
)

// Handlers are called inline once they have been quick for long, and not after one that was not.
func TestInline(t *testing.T) {
	var i Inline
	quick := func(n int) {
		for range n {
			i.Took(quickCall)
		}
	}
	open := func(when string, want bool) {
		t.Helper()
		if i.Open() != want {
			t.Errorf("%s: open %t", when, !want)
		}
	}
	open("at first", false)
	quick(inlineAfter - 1)
	open("before long", false)
	quick(1)
	open("after long", true)
	quick(10 * inlineAfter)
	i.Took(quickCall + 1)
	open("after one that is slow", false)
	quick(inlineAfter - 1)
	open("before long again", false)
	quick(1)
	open("after long again", true)
	i.Close()
	open("closed", false)

	AllowInline = false
	defer func() { AllowInline = true }()
	quick(2 * inlineAfter)
	open("not allowed", false)
}

func TestInlineByManyWorkers(t *testing.T) {
	var i Inline
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range inlineAfter {
				i.Took(0)
			}
		})
	}
	wg.Wait()
	if !i.Open() {
		t.Error("not open")
	}
	i.Took(time.Second)
	if i.Open() {
		t.Error("open")
	}
}

// loop is a loop of queries, of which each is a function that the handler calls.
type loop struct {
	Lead
	inflight service.Inflight
	inline   Inline
	service  *service.Service
	queries  chan func()
	leaders  atomic.Int32 // that are in no handler
	led      atomic.Int32 // how often somebody began to lead
	over     chan struct{}
	most     atomic.Int32 // leaders at one time
}

func newLoop(t *testing.T, n int) *loop {
	l := &loop{queries: make(chan func(), n), over: make(chan struct{})}
	l.service = serviceOf(t, &decider{message: func(context.Context, dns.ResponseWriter, *dns.Msg) {
		select {
		case q := <-l.queries:
			q()
		default: // who was taken over before it got its query may leave one call more than there are queries
		}
	}})
	l.Run, l.Inflight, l.Inline = l.run, &l.inflight, &l.inline
	l.inline.quick.Store(inlineAfter)
	return l
}

// run leads the loop until there are no more queries.
func (l *loop) run() {
	l.led.Add(1)
	l.begin()
	for len(l.queries) > 0 {
		l.Arm()
		l.leaders.Add(-1)
		if !l.Call(l.service, nil, new(dns.Msg)) {
			return
		}
		l.begin()
		l.Disarm()
	}
	close(l.over)
}

// begin notes that somebody leads.
func (l *loop) begin() {
	n := l.leaders.Add(1)
	for {
		most := l.most.Load()
		if n <= most || l.most.CompareAndSwap(most, n) {
			return
		}
	}
}

// ended fails unless all is over as it should be.
func (l *loop) ended(t *testing.T) {
	t.Helper()
	<-l.over
	if n := l.most.Load(); n != 1 {
		t.Errorf("%d led at one time", n)
	}
	nobodyWaits(t)
	<-l.inflight.Drained()
	if n := l.inflight.Count(); n != 0 {
		t.Errorf("%d are in flight", n)
	}
}

// Who calls handlers that are quick leads on.
func TestLeadOfQuickHandlers(t *testing.T) {
	l := newLoop(t, 100)
	for range 100 {
		l.queries <- func() {}
	}
	go l.run()
	<-l.over
	l.Disarm()
	if n := l.led.Load(); n != 1 && l.inline.Open() { // on a busy machine one may be taken over
		t.Errorf("%d led", n)
	}
	l.ended(t)
}

// While a handler waits, another goroutine leads; the query counts as one that waits, and as in flight, and handlers
// are not called inline any more.
func TestTakeOver(t *testing.T) {
	l := newLoop(t, 3)
	release, returned := make(chan struct{}), make(chan struct{})
	l.queries <- func() { <-release }
	next := make(chan struct{})
	l.queries <- func() { close(next) } // would never be called
	go func() {
		l.run()
		close(returned)
	}()
	<-next
	<-l.over
	if l.inline.Open() {
		t.Error("handlers are called inline")
	}
	if n := l.inflight.Count(); n < 1 {
		t.Errorf("%d in flight", n)
	}
	if atWork, _ := Waits(); atWork < 1 {
		t.Errorf("%d count as at work", atWork)
	}
	close(release)
	<-returned
	l.ended(t)
}

// A handler that ends the goroutine of a loop does not end the loop.
func TestHandlerEndsTheLeader(t *testing.T) {
	l := newLoop(t, 10)
	for range 3 {
		l.queries <- runtime.Goexit
		l.queries <- func() {}
	}
	go l.run()
	<-l.over
	if n := l.led.Load(); n < 4 {
		t.Errorf("%d led", n)
	}
	l.ended(t)
}

// A handler that was taken over and ends its goroutine then ends nothing else.
func TestHandlerEndsItsGoroutineLater(t *testing.T) {
	l := newLoop(t, 2)
	release := make(chan struct{})
	l.queries <- func() { <-release; runtime.Goexit() }
	l.queries <- func() {}
	go l.run()
	<-l.over
	led := l.led.Load()
	close(release)
	l.ended(t)
	if n := l.led.Load(); n != led {
		t.Errorf("%d led after the end", n-led)
	}
}

// Nobody takes over between calls, nor once the batch is over; while it goes on, that is looked at again.
func TestNoTakeOverBetweenCalls(t *testing.T) {
	l := newLoop(t, 0)
	l.Arm()
	defer l.Disarm()
	l.timer.Stop()
	l.takeOver()
	if !l.timer.Stop() {
		t.Error("it is not looked at again")
	}
	l.Disarm()
	l.takeOver()
	if l.timer.Stop() {
		t.Error("it is looked at again though nothing is called")
	}
	if l.led.Load() != 0 || l.inflight.Busy() || !l.inline.Open() {
		t.Error("taken over")
	}
	l.Arm()
	if !l.timer.Stop() {
		t.Error("the timer is not set a second time")
	}
}

// Whoever comes first, the handler's end or the takeover: one leads, and all is counted.
func TestTakeOverRaces(t *testing.T) {
	for range 200 { // the handlers may all have ended before anybody looks
		if takeOverRaces(t) {
			return
		}
	}
	t.Error("nobody took over")
}

// takeOverRaces reports whether somebody took over.
func takeOverRaces(t *testing.T) bool {
	const n = 5000
	l := newLoop(t, n)
	var served atomic.Int32
	for range n {
		l.queries <- func() {
			served.Add(1)
			runtime.Gosched()
		}
	}
	l.Arm()
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for {
				select {
				case <-l.over:
					return
				default:
					l.takeOver()
				}
			}
		})
	}
	go l.run()
	others.Wait()
	l.ended(t)
	if served.Load() != n {
		t.Errorf("%d of %d were served", served.Load(), n)
	}
	return l.led.Load() >= 2
}

// With debug a panic is not taken for the end of a goroutine: it is seen, and nobody leads on.
func TestPanicOfLeaderIsSeen(t *testing.T) {
	if os.Getenv(ownProcess) == "" {
		dies(t, "yes", "as asked")
		return
	}
	l := newLoop(t, 1)
	l.service.Debug = true
	l.queries <- func() { panic("as asked") }
	go l.run()
	<-l.over
}

// After a panic that is recovered from further up nobody else leads: with debug it is the caller's.
func TestPanicWithDebug(t *testing.T) {
	l := newLoop(t, 1)
	l.service.Debug = true
	l.queries <- func() { panic("as asked") }
	l.Arm()
	func() {
		defer func() {
			if v := recover(); v != "as asked" {
				t.Errorf("recovered from %v", v)
			}
		}()
		l.Call(l.service, nil, new(dns.Msg))
	}()
	l.Disarm()
	for range 100 {
		runtime.Gosched()
	}
	if n := l.led.Load(); n != 0 {
		t.Errorf("%d led", n)
	}
}
