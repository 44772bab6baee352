package proxy

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
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

// stayer is of how many exchanges that may give way one does not. Else nothing would tell of an upstream that has
// become slow, as no reply would be waited for.
var stayer int64 = 64

// stays reports whether x, which has begun, is one of these.
func stays(x *Exchange) bool { return x.begun>>10%stayer == 0 }

// There may be thousands of engines. giveWay chooses among lookAtOnce of them, and goes on if no exchange of these may
// give way, but looks at no more than lookAtMost.
const (
	lookAtOnce = 64
	lookAtMost = 4096
)

// turn is where giveWay begins: where it found one, as most are idle.
var turn atomic.Int64

func init() { eventloop.OnCrowd(giver) }

// giver is an eventloop.Giver. Its exchanges are those of all Proxies that say GivesWay with a place that is wanted,
// and whose query has waited for 200 ms, or for twice as long as replies usually take. Those over HTTP/3 and
// QUIC are not among them: they are fewer, and give way among themselves.
func giver(wanted eventloop.Place) (time.Time, func() bool) {
	with, since := oldest(wanted, int64(time.Since(epoch)), nil)
	if with == nil {
		return time.Time{}, nil
	}
	return epoch.Add(time.Duration(since)), func() bool { return with.giveWay(wanted, int64(time.Since(epoch)), nil) }
}

// GiveWay is eventloop.MakeRoom among the exchanges that fit. It looks at the first ones only. fits is called with a
// lock held: it looks at what does not change while the exchange is under way.
func GiveWay(wanted eventloop.Place, fits func(*Exchange) bool) bool {
	return giveWay(wanted, int64(time.Since(epoch)), fits)
}

func giveWay(wanted eventloop.Place, now int64, fits func(*Exchange) bool) bool {
	for range 2 { // it may have come to its own end
		with, _ := oldest(wanted, now, fits)
		if with == nil {
			return false
		}
		if with.giveWay(wanted, now, fits) {
			return true
		}
	}
	return false
}

// oldest is the engine with the exchange whose query has waited longest, of those that may give way and fit, nil for
// all, and since when. It is nil if there is none.
func oldest(wanted eventloop.Place, now int64, fits func(*Exchange) bool) (with *engine, since int64) {
	since = math.MaxInt64
	all := ticking.list()
	from := int(turn.Load())
	for i := range min(len(all), lookAtMost) {
		if i%lookAtOnce == 0 && with != nil {
			break
		}
		at := (from + i) % len(all)
		e := all[at]
		e.mu.Lock()
		if x := e.givers.oldest(wanted, min(since, now-int64(e.usual.Patience())), fits); x != nil {
			with, since = e, x.since
			turn.Store(int64(at))
		}
		e.mu.Unlock()
	}
	if with == nil {
		turn.Store(int64(from+lookAtMost) % (1 << 30))
	}
	return with, since
}

// giveWay ends the oldest exchange of e with ErrGaveWay, and reports whether there was one: it may be another one than
// oldest saw.
func (e *engine) giveWay(wanted eventloop.Place, now int64, fits func(*Exchange) bool) bool {
	inside := e.ending.enter()
	defer inside.Done()
	e.mu.Lock()
	x := e.givers.oldest(wanted, now-int64(e.usual.Patience()), fits)
	if x != nil {
		switch c := x.on.(type) { // if nothing came for so long, it takes no more
		case *streamConn:
			c.late(x)
		case *httpConn:
			c.late(x)
		}
		e.take(x, e.now())
	}
	e.unlock()
	if x == nil {
		return false
	}
	e.end(x, ErrGaveWay)
	return true
}

// givers are the exchanges that may give way, by the places they have. The engine's lock guards them.
type givers [eventloop.Kinds]giverList

// oldest is one with a place that is wanted and a query that began before a time, which fits, nil if there is none.
func (g *givers) oldest(wanted eventloop.Place, before int64, fits func(*Exchange) bool) (x *Exchange) {
	for kind := range g {
		if eventloop.Place(kind)&wanted == 0 {
			continue
		}
		if y := g[kind].oldest(before, fits); y != nil {
			x, before = y, y.since
		}
	}
	return x
}

// giverList are exchanges in the order in which they began.
type giverList struct{ first, last *Exchange }

// giverLinks are an exchange's place in a giverList.
type giverLinks struct {
	older, newer *Exchange
	gives        bool // it has one
}

func (g *giverList) add(x *Exchange) {
	x.giverLinks = giverLinks{older: g.last, gives: true}
	if g.last != nil {
		g.last.newer = x
	} else {
		g.first = x
	}
	g.last = x
}

// remove takes x out, if it is in.
func (g *giverList) remove(x *Exchange) {
	if !x.gives {
		return
	}
	if x.older != nil {
		x.older.newer = x.newer
	} else {
		g.first = x.newer
	}
	if x.newer != nil {
		x.newer.older = x.older
	} else {
		g.last = x.older
	}
	x.giverLinks = giverLinks{}
}

// oldest is the one among the first of them whose query began first, if that was before a time and it fits, or nil.
// Of exchanges that began with their queries that is the first one. Those for which nobody waits any more are taken out
// on the way.
func (g *giverList) oldest(before int64, fits func(*Exchange) bool) (oldest *Exchange) {
	x := g.first
	for i := 0; i < lookAtOnce && x != nil; {
		next := x.newer
		if w, ok := x.Owner.(Waiter); ok && !w.Waits() {
			g.remove(x)
			x = next
			continue
		}
		if x.since < before && (fits == nil || fits(x)) {
			if oldest, before = x, x.since; x.Since.IsZero() {
				return x
			}
		}
		x = next
		i++
	}
	return oldest
}

// silent reports whether a connection may be dead, on which a query was sent that ended so now: nothing has come since
// heard, in all the time that a query has. Where queries give way, none has that time.
func (p *Proxy) silent(err error, heard, sent, now int64) bool {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return heard < sent
	case errors.Is(err, ErrGaveWay):
		return heard <= now-p.readTimeout.Load()
	}
	return false
}
