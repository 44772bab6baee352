package exec

import (
	"runtime"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

const ms = int64(time.Millisecond)

// one is a backlog behind one query at a time, and the processor that serves those.
type one struct {
	backlog
	t     *testing.T
	order int64 // when the last one came that began
}

func newOne(t *testing.T) *one { return &one{backlog: backlog{ahead: 1}, t: t} }

// come has a query come, and next the next one begin that is not late, which reports when that came, 0 if none does.
func (b *one) come(now int64) {
	if w := (&Waiting{came: now}); !b.add(w) {
		b.begin(w)
	}
}

func (b *one) begin(w *Waiting) {
	if w.came < b.order {
		b.t.Fatal("not in the order in which they came")
	}
	b.order = w.came
}

func (b *one) next(now int64) (came int64) {
	b.unbegun = 0
	for w, late := b.backlog.next(now); w != nil; w, late = b.backlog.next(now) {
		if !late {
			b.begin(w)
			return w.came
		}
	}
	return 0
}

// While as many have begun as may be ahead, none of those that wait begins.
func TestBacklogWaitsForThoseAhead(t *testing.T) {
	b := &backlog{ahead: 2}
	for i := range int64(4) {
		if waits := b.add(&Waiting{came: i}); waits != (i >= 2) {
			t.Errorf("query %d waits: %t", i, waits)
		}
	}
	if w, late := b.next(ms); w != nil || late {
		t.Error("a third one begins")
	}
	b.unbegun--
	if w, late := b.next(ms); w == nil || w.came != 2 || late {
		t.Errorf("%v begins, late %t", w, late)
	}
	if w, _ := b.next(ms); w != nil {
		t.Error("two begin in the place of one")
	}
}

// Four times as many queries come as can be served, for a minute: those that are served are in time, but for the first
// ones, which may be a burst, and as many are as can be.
func TestBacklogThatGrows(t *testing.T) {
	b := newOne(t)
	served, overdue := 0, 0
	for now := ms; now < 60_000*ms; now += ms {
		b.come(now)
		if now%(4*ms) != 0 {
			continue
		}
		if came := b.next(now); came != 0 {
			served++
			if now > burst+100*ms && now-came > waitedLong {
				overdue++
			}
		}
	}
	if served < 60_000/4*9/10 || overdue > 0 {
		t.Errorf("%d were served, %d of them late", served, overdue)
	}
	if n := cap(b.queue); n > 16<<10 {
		t.Errorf("memory for %d", n)
	}
}

// A burst is served, however long that takes, if it is over soon, and so is the next one after a while.
func TestBacklogOfABurst(t *testing.T) {
	b := newOne(t)
	for round := range int64(3) {
		from := ms + round*20*burst
		for range 100 {
			b.come(from)
		}
		for i := range int64(100) {
			came := b.next(from + burst*i/100)
			if (came == 0) != (i == 99) {
				t.Fatalf("number %d began: %t", i, came != 0)
			}
		}
	}
}

// What comes behind a burst that was too long finds no such burst served again.
func TestBacklogSoonAgain(t *testing.T) {
	b := newOne(t)
	for _, from := range []int64{ms, burst * 2} {
		for range 3 {
			b.come(from)
		}
		late := from + waitedLong + ms
		if from == ms {
			late = from + burst + ms
		}
		if b.next(late) != 0 {
			t.Fatalf("what came at %s began", time.Duration(from))
		}
	}
	b.come(burst*2 + again*2)
	b.come(burst*2 + again*2)
	if b.next(burst*2+again*2+waitedLong+ms) == 0 {
		t.Error("it was never forgotten")
	}
}

// Queries over UDP that are more than have goroutines wait in the order in which they came. One for which it is too late
// is dropped, and counted.
func TestQueuedQueries(t *testing.T) {
	for _, tooLate := range []bool{false, true} {
		mayWait(t, 1000)
		s := serviceOf(t, new(decider))
		dropped := func() float64 { return testutil.ToFloat64(vars.QueriesDropped.WithLabelValues(s.Label, "waiting")) }
		before := dropped()
		w, b := pool(), packet(t, "www.example.org.")
		w.mu.Lock()
		w.unbegun = w.ahead // as if all were about to begin
		w.mu.Unlock()
		var all []*source
		for range 3 {
			from := newSource()
			LaterOrDrop(from, s, b, nil, wire.Unpack)
			all = append(all, from)
		}
		if atWork, _ := Waits(); atWork != 3 {
			t.Errorf("%d are said to be at work", atWork)
		}
		told, lost := "begin; message www; end", 0.0
		w.mu.Lock()
		if tooLate {
			told, lost = "begin; end", 3
			w.since = service.Now() - 2*burst
			for _, q := range w.backlog.queue[w.first:] {
				q.came = w.since
			}
		}
		w.mu.Unlock()
		w.begun()
		for _, from := range all {
			<-from.over
			if got := from.told(); got != told {
				t.Errorf("got %s, want %s", got, told)
			}
		}
		nobodyWaits(t)
		if n := dropped() - before; n != lost {
			t.Errorf("%v dropped", n)
		}
		w.mu.Lock()
		if w.unbegun != w.ahead-1 || w.ahead < runtime.NumCPU() && w.ahead < perProcessor {
			t.Errorf("%d are about to begin, of %d", w.unbegun, w.ahead)
		}
		w.unbegun, w.late = 0, 0
		w.mu.Unlock()
	}
}

// What is dropped as it is too late makes room for those that wait for it, such as streams.
func TestQueuedQueriesMakeRoom(t *testing.T) {
	mayWait(t, 2)
	s := serviceOf(t, new(decider))
	w, b := pool(), packet(t, "www.example.org.")
	w.mu.Lock()
	w.unbegun = w.ahead
	w.mu.Unlock()
	in := make(chan bool)
	for range 2 {
		LaterOrDrop(newSource(), s, b, nil, wire.Unpack)
	}
	for range 2 {
		go func() { in <- w.enter(t.Context()) }()
	}
	eventually.Holds(t, "both wait", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.waiting == 2
	})
	w.mu.Lock()
	w.late = service.Now()
	for _, q := range w.backlog.queue[w.first:] {
		q.came -= 2 * waitedLong
	}
	w.mu.Unlock()
	w.begun()
	for range 2 {
		select {
		case <-in:
			w.leave()
		case <-time.After(2 * time.Second):
			t.Fatal("one still waits")
		}
	}
	nobodyWaits(t)
	w.mu.Lock()
	w.unbegun, w.late = 0, 0
	w.mu.Unlock()
}

// What waits to begin counts as what waits.
func TestQueuedQueriesAreBounded(t *testing.T) {
	mayWait(t, 2)
	s := serviceOf(t, new(decider))
	w, b := pool(), packet(t, "www.example.org.")
	w.mu.Lock()
	w.unbegun = w.ahead
	w.mu.Unlock()
	var all []*source
	for i := range 3 {
		from := newSource()
		LaterOrDrop(from, s, b, nil, wire.Unpack)
		if got := from.told(); (got == "begin; end") != (i == 2) {
			t.Errorf("number %d: %s", i, got)
		}
		all = append(all, from)
	}
	w.begun()
	for _, from := range all {
		<-from.over
	}
	nobodyWaits(t)
	w.mu.Lock()
	w.unbegun = 0
	w.mu.Unlock()
}
