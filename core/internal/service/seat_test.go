package service

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestSeat(t *testing.T) {
	var p Seat
	one, two := new(Service), new(Service)
	p.Sit(one)
	if s := p.Enter(); s != one || p.Now() != one || !one.Inflight.Busy() {
		t.Error("the query is not that of who sits there")
	}
	p.Sit(two)
	if p.Now() != two || p.Enter() != two || one.Inflight.Count() != 1 || two.Inflight.Count() != 1 {
		t.Error("queries are not those of who sits there")
	}
	one.Inflight.Done()
	two.Inflight.Done()
}

// Who has left the seat hears of no query any more once it has none in flight.
func TestSeatIsTakenOver(t *testing.T) {
	const rounds = 50
	for range rounds {
		var p Seat
		one, two := new(Service), new(Service)
		p.Sit(one)
		var over atomic.Bool // one has ended
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				for p.Now() == one {
					s := p.Enter()
					if s == one && over.Load() {
						t.Error("a query began with who has ended")
					}
					s.Inflight.Done()
				}
			})
		}
		runtime.Gosched()
		p.Sit(two)
		<-one.Inflight.Drained()
		over.Store(true)
		all.Wait()
		if one.Inflight.Busy() || two.Inflight.Busy() {
			t.Fatal("in flight")
		}
	}
}

func TestHolder(t *testing.T) {
	var p Seat
	var h Holder
	one, two := new(Service), new(Service)
	p.Sit(one)
	if h.Holds(one) {
		t.Error("held before")
	}
	for range 2 {
		if h.Hold(&p) != one || !h.Holds(one) {
			t.Error("not held")
		}
	}
	p.Sit(two)
	if !h.Holds(one) {
		t.Error("a query goes on with who has begun it")
	}
	if h.Hold(&p) != two || h.Holds(one) || !h.Holds(two) {
		t.Error("not who sits there now")
	}
	h.Release()
	h.Release()
	if h.Holds(one) || h.Holds(two) {
		t.Error("held after")
	}
}

// A Holder holds who sits there, whatever goes on meanwhile.
func TestHolderRaces(t *testing.T) {
	for range 50 {
		var p Seat
		var h Holder
		one, two := new(Service), new(Service)
		p.Sit(one)
		var over atomic.Bool
		var all sync.WaitGroup
		all.Go(func() {
			for p.Now() == one {
				if h.Hold(&p) == one && over.Load() {
					t.Error("held who has ended")
				}
				h.Release()
			}
		})
		runtime.Gosched()
		p.Sit(two)
		for h.Holds(one) {
			runtime.Gosched()
		}
		over.Store(true)
		all.Wait()
	}
}

// heirloom is a transport that holds a Service so many times that it is asked.
type heirloom struct {
	Transport
	holds atomic.Int32
}

func (h *heirloom) Sit(*Service)          {}
func (h *heirloom) Holds(s *Service) bool { return h.holds.Add(-1) >= 0 }

func TestLetGo(t *testing.T) {
	s := new(Service)
	if err := s.LetGo(t.Context(), nil); err != nil {
		t.Errorf("with nothing in flight: %v", err)
	}
	first, second := new(heirloom), new(heirloom)
	first.holds.Store(3)
	second.holds.Store(2)
	s.Inflight.Add()
	done := make(chan error, 1)
	go func() { done <- s.LetGo(t.Context(), []Heirloom{first, second}) }()
	for second.holds.Load() >= 0 { // it has asked until nobody held it
		runtime.Gosched()
	}
	if len(done) > 0 {
		t.Error("a query is in flight")
	}
	s.Inflight.Done()
	if err := <-done; err != nil || first.holds.Load() >= 0 {
		t.Errorf("got %v", err)
	}
}

func TestLetGoGivesUp(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	s, held := new(Service), new(heirloom)
	held.holds.Store(1 << 20)
	if err := s.LetGo(over, []Heirloom{held}); !errors.Is(err, context.Canceled) {
		t.Errorf("held: %v", err)
	}
	s.Inflight.Add()
	if err := s.LetGo(over, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("in flight: %v", err)
	}
}
