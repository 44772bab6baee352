package proxy

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// engines are some engines. Readers hold no lock.
type engines struct {
	mu  sync.Mutex // writers
	all atomic.Pointer[[]*engine]
}

// ticking are the engines whose clocks run: no others have exchanges under way.
var ticking engines

func (s *engines) list() []*engine {
	if all := s.all.Load(); all != nil {
		return *all
	}
	return nil
}

func (s *engines) add(e *engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := append(slices.Clone(s.list()), e)
	s.all.Store(&all)
}

func (s *engines) remove(e *engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(s.list()), func(other *engine) bool { return other == e })
	s.all.Store(&all)
}

// GiveWay ends an exchange with ErrGaveWay, and reports whether there was one: of those of all Proxies that say
// GivesWay and began before a time, the one that has waited longest. Those that wait for clients of DNS over HTTPS and
// QUIC are not among them. It may be called where EndExchange may.
func GiveWay(before time.Time) bool {
	limit := int64(before.Sub(epoch))
	var with *engine
	for _, e := range ticking.list() {
		e.mu.Lock()
		if x := e.wheel.oldest(limit); x != nil {
			with, limit = e, x.begun
		}
		e.mu.Unlock()
	}
	if with == nil {
		return false
	}
	inside := with.ending.enter()
	defer inside.Done()
	with.mu.Lock()
	x := with.wheel.oldest(limit + 1) // it may be another one by now
	if x != nil {
		with.take(x, with.now())
	}
	with.unlock()
	if x == nil {
		return false
	}
	with.end(x, ErrGaveWay)
	return true
}

// lookAtMost is how many exchanges oldest looks at.
const lookAtMost = 64

// oldest is one of the exchanges that give way and began before a time, nil if none is found soon. As they are in the
// order in which they are late, the first one is hardly younger than others.
func (w *wheel) oldest(before int64) (found *Exchange) {
	if w.n == 0 {
		return nil
	}
	looked := 0
	for tick := w.done + 1; tick < w.done+ringSize; tick++ {
		for x := w.ring[tick%ringSize]; x != nil; x = x.next {
			if x.GivesWay && x.begun < before {
				found, before = x, x.begun
			}
			if looked++; looked == lookAtMost {
				return found
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}
