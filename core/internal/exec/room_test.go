package exec

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// roomMaker is what OnCrowd is told once, for all tests.
var roomMaker atomic.Pointer[func(eventloop.Place) bool]

func init() {
	eventloop.OnCrowd(func(wanted eventloop.Place) (time.Time, func() bool) {
		if f := roomMaker.Load(); f != nil && (*f)(wanted) {
			return time.Time{}, func() bool { return true }
		}
		return time.Time{}, nil
	})
}

// Who comes when as many are parked as may be, and waits for what another one began, makes room, too, if that can be.
func TestLaterMakesRoom(t *testing.T) {
	mayWait(t, 1)
	old, next := newExchange(), newExchange()
	on := old
	s := serviceOf(t, &decider{wire: func(_ *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
		switch q.Awaited() {
		case nil:
			q.Await(on)
		case eventloop.Exchange(old):
			q.Await(nil)
		default:
			return []byte("late"), wire.Done
		}
		return nil, wire.Park
	}})
	b := packet(t, "www.example.org.")
	park := func() *source {
		r, from := NewRun(), newSource()
		defer r.Free()
		LaterOrDrop(from, s, b, &r.Query, firstRun(s, r, b))
		return from
	}
	first := park()
	<-old.parked
	on = next
	asked := 0
	f := func(eventloop.Place) bool { asked++; return false }
	roomMaker.Store(&f)
	defer roomMaker.Store(nil)
	parkedPlaces.looked.Store(-int64(time.Hour))
	if got := park().told(); got != "begin; end" || asked != 1 {
		t.Errorf("none gives way: %s, asked %d times", got, asked)
	}
	parkedPlaces.looked.Store(int64(time.Hour))
	if !crowded() || asked != 1 {
		t.Error("it is asked at once again")
	}
	parkedPlaces.looked.Store(-int64(time.Hour))
	f2 := func(eventloop.Place) bool { old.End(); return true }
	roomMaker.Store(&f2)
	second := park()
	<-first.over
	if got := first.told(); got != "begin; end" {
		t.Errorf("the first one: %s", got)
	}
	<-next.parked
	next.End()
	<-second.over
	if got := second.told(); got != "begin; reply late, may wait: false; end" {
		t.Errorf("the second one: %s", got)
	}
	nobodyWaits(t)
}

// givesWay has f called when a place of a kind is wanted, as if nobody had been asked before.
func givesWay(t *testing.T, f func(wanted eventloop.Place) bool) {
	roomMaker.Store(&f)
	parkedPlaces.looked.Store(-int64(time.Hour))
	workPlaces.looked.Store(-int64(time.Hour))
	t.Cleanup(func() { roomMaker.Store(nil) })
}

// A query of a connection that comes when as many are parked as may be makes room, too.
func TestStreamMakesRoom(t *testing.T) {
	mayWait(t, 1)
	x := []*exchange{newExchange(), newExchange()}
	began := 0
	s := serviceOf(t, &decider{wire: func(_ *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
		if q.Awaited() != nil {
			return []byte("late"), wire.Done
		}
		q.Await(x[began])
		began++
		return nil, wire.Park
	}})
	b := packet(t, "www.example.org.")
	later := func() *source {
		r, from := NewRun(), newSource()
		defer r.Free()
		Later(from, s, b, &r.Query, firstRun(s, r, b))
		return from
	}
	first := later()
	var wanted []eventloop.Place
	givesWay(t, func(p eventloop.Place) bool {
		wanted = append(wanted, p)
		x[0].End()
		return true
	})
	second := later()
	<-first.over
	if len(wanted) != 1 || wanted[0] != eventloop.Parked {
		t.Errorf("wanted were %v", wanted)
	}
	x[1].End()
	<-second.over
	nobodyWaits(t)
}

// Plugins in a loop know whether a query would have a place in the message lane.
func TestPluginsKnowOfWorkers(t *testing.T) {
	mayWait(t, 1)
	if eventloop.AllAtWork() {
		t.Error("nobody is at work")
	}
	release := make(chan struct{})
	held := newSource()
	held.serve = func() { <-release }
	LaterOrDrop(held, serviceOf(t, new(decider)), packet(t, "www.example.org."), nil, wire.Unpack)
	if !eventloop.AllAtWork() {
		t.Error("all are at work")
	}
	close(release)
	<-held.over
	nobodyWaits(t)
}

// Who gives way may ask for something else, and so go on. There are not ever more at work for that.
func TestWorkersStayBounded(t *testing.T) {
	w := newWorkers(2)
	release := make(chan struct{})
	defer close(release)
	asked := 0
	givesWay(t, func(eventloop.Place) bool { asked++; return true })
	taken := 0
	for range 10 * wantAtLeast {
		if w.try(taskFunc(func() { <-release })) {
			taken++
		}
	}
	if asked == 0 || taken > 2+wantAtLeast {
		t.Errorf("%d at work, and %d were to give way", taken, asked)
	}
}

// Who needs a goroutine that may wait when all are at work gets the place of one that gives way, over any transport.
func TestWorkersGiveWay(t *testing.T) {
	b := packet(t, "www.example.org.")
	for name, ask := range map[string]func(s *service.Service, served chan<- bool){
		"datagram": func(s *service.Service, served chan<- bool) {
			from := newSource()
			from.serve = func() { served <- true }
			LaterOrDrop(from, s, b, nil, wire.Unpack)
			<-from.over
		},
		"connection": func(s *service.Service, served chan<- bool) {
			from := newSource()
			from.serve = func() { served <- true }
			Later(from, s, b, nil, wire.Unpack)
			<-from.over
		},
		"stream": func(s *service.Service, _ chan<- bool) { Serve(t.Context(), s, new(queryWriter), b) },
	} {
		t.Run(name, func(t *testing.T) {
			mayWait(t, 1)
			release, served := make(chan struct{}), make(chan bool, 1)
			held := newSource()
			held.serve = func() { <-release }
			s := serviceOf(t, &decider{message: func(ctx context.Context, _ dns.ResponseWriter, _ *dns.Msg) {
				served <- eventloop.PlaceOf(ctx) == eventloop.AtWork
			}})
			s.Wire = false
			LaterOrDrop(held, s, b, nil, wire.Unpack)
			var once sync.Once
			asked := 0
			givesWay(t, func(p eventloop.Place) bool {
				if asked++; p != eventloop.AtWork {
					t.Errorf("place %v is wanted", p)
				}
				once.Do(func() { close(release) })
				return true
			})
			ask(s, served)
			select {
			case ok := <-served:
				if !ok || asked != 1 {
					t.Errorf("it has a place: %t; it was asked %d times for one", ok, asked)
				}
			default:
				t.Error("it was not served")
				once.Do(func() { close(release) })
			}
			<-held.over
			nobodyWaits(t)
		})
	}
}

// Who waits for a goroutine gets the place of one that gives way later, too, though nobody new comes.
func TestThoseThatWaitMakeRoom(t *testing.T) {
	for name, wait := range map[string]func(w *workers, in func()){
		"task": func(w *workers, in func()) { w.do(taskFunc(in)) },
		"goroutine": func(w *workers, in func()) {
			if w.enter(context.Background()) {
				in()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			const waiting = 5
			w := newWorkers(1)
			w.begin()
			var asked, granted atomic.Int64
			var patient atomic.Bool
			patient.Store(true)
			givesWay(t, func(eventloop.Place) bool {
				asked.Add(1)
				return !patient.Load() && granted.Add(1) <= 3
			})
			in := make(chan bool, waiting)
			for range waiting {
				go wait(w, func() { in <- true })
			}
			eventually.Holds(t, "it is asked again", func() bool { return asked.Load() > waiting })
			if len(in) > 0 {
				t.Error("one went on though none gave way")
			}
			patient.Store(false)
			for range 3 {
				<-in
			}
			before := asked.Load()
			eventually.Holds(t, "it is asked again", func() bool { return asked.Load() > before+1 })
			w.mu.Lock()
			left, given := w.waiting, w.given
			w.mu.Unlock()
			if len(in) > 0 || left != waiting-3 || given != 0 {
				t.Errorf("%d more went on, %d wait, %d may go on", len(in), left, given)
			}
			w.limit(0)
			for range waiting - 3 {
				<-in
			}
		})
	}
}

// The place among those parked is free at once when the exchange has ended, whenever the goroutine goes on.
func TestSleeperLeavesItsPlace(t *testing.T) {
	parked.Add(1)
	s := new(sleeper)
	s.Lock()
	s.Resume()
	if n := parked.Load(); n != 0 {
		t.Errorf("%d are parked", n)
	}
	if !s.TryLock() {
		t.Error("the goroutine sleeps on")
	}
}

// The chain knows which places a query has while it is parked.
func TestPlaces(t *testing.T) {
	b := packet(t, "www.example.org.")
	var places []eventloop.Place
	s := serviceOf(t, &decider{wire: func(_ *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
		places = append(places, q.GivesWay())
		if q.Awaited() != nil {
			return nil, wire.Done
		}
		x := newExchange()
		x.End()
		q.Await(x)
		return nil, wire.Park
	}})
	for name, tc := range map[string]struct {
		ask  func()
		want eventloop.Place
	}{
		"goroutine of its own": {func() { Serve(t.Context(), s, new(queryWriter), b) }, eventloop.Parked | eventloop.AtWork},
		"none": {func() {
			r, from := NewRun(), newSource()
			Later(from, s, b, &r.Query, firstRun(s, r, b))
			r.Free()
			<-from.over
		}, eventloop.Parked},
	} {
		places = nil
		tc.ask()
		if len(places) != 2 || places[0] != tc.want || places[1] != tc.want {
			t.Errorf("%s: %v, want %v in both runs", name, places, tc.want)
		}
		nobodyWaits(t)
	}
}
