package wire_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

type resumed struct{ atomic.Int32 }

func (r *resumed) Resume() { r.Add(1) }

func TestEnding(t *testing.T) {
	var e wire.Ending
	var before, after resumed
	e.Then(&before)
	if e.Over() || before.Load() != 0 {
		t.Fatal("over before its end")
	}
	e.End()
	e.Then(&after)
	if !e.Over() || before.Load() != 1 || after.Load() != 1 {
		t.Errorf("over %t, resumed %d and %d times, want once each", e.Over(), before.Load(), after.Load())
	}
}

type resumedIn struct {
	resumed
	lane  *wire.Lane
	keeps bool
}

func (r *resumedIn) ResumeIn(l *wire.Lane) (done bool) {
	r.lane = l
	return !r.keeps
}

// Who can go on in the lane of the one that ends an exchange does so; others are resumed.
func TestEndingInALane(t *testing.T) {
	var e wire.Ending
	var in resumedIn
	var out, late resumed
	e.Then(&in)
	e.Then(&out)
	l := wire.NewLane()
	defer l.Close()
	e.EndIn(l)
	e.Then(&late)
	if in.lane != l || in.Load() != 0 || out.Load() != 1 || late.Load() != 1 {
		t.Errorf("lane %v, resumed %d, %d and %d times", in.lane, in.Load(), out.Load(), late.Load())
	}
}

// An exchange is used again only if who began it has waited, in a lane, and nobody keeps it.
func TestOwnedEnding(t *testing.T) {
	l := wire.NewLane()
	defer l.Close()
	for name, tc := range map[string]struct {
		wait func(e *wire.Ending)
		lane *wire.Lane
		done bool
	}{
		"nobody":             {func(*wire.Ending) {}, l, false},
		"the owner":          {func(e *wire.Ending) { e.ThenOwner(&resumedIn{}) }, l, true},
		"without a lane":     {func(e *wire.Ending) { e.ThenOwner(&resumedIn{}) }, nil, false},
		"another one":        {func(e *wire.Ending) { e.Then(&resumedIn{}) }, l, false},
		"both":               {func(e *wire.Ending) { e.Then(&resumedIn{}); e.ThenOwner(&resumedIn{}) }, l, true},
		"one that keeps":     {func(e *wire.Ending) { e.Then(&resumedIn{keeps: true}); e.ThenOwner(&resumedIn{}) }, l, false},
		"an owner that does": {func(e *wire.Ending) { e.ThenOwner(&resumedIn{keeps: true}) }, l, false},
		"one outside":        {func(e *wire.Ending) { e.ThenOwner(&resumedIn{}); e.Then(&resumed{}) }, l, false},
	} {
		var e wire.Ending
		for range 2 {
			tc.wait(&e)
			if got := e.EndIn(tc.lane); got != tc.done || !e.Over() {
				t.Errorf("%s: %v, want %v", name, got, tc.done)
			}
			if e.Anew(); e.Over() {
				t.Errorf("%s: it has ended already", name)
			}
		}
	}
}

// Who begins to wait while the exchange ends is resumed too.
func TestEndingAtOnce(t *testing.T) {
	for range 1000 {
		var e wire.Ending
		var r resumed
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { e.Then(&r) })
		}
		all.Go(e.End)
		all.Wait()
		if n := r.Load(); n != 4 {
			t.Fatalf("%d of 4 resumed", n)
		}
	}
}
