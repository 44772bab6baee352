package eventloop_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

type resumed struct{ atomic.Int32 }

func (r *resumed) Resume() { r.Add(1) }

func TestEnding(t *testing.T) {
	var e eventloop.Ending
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
	loop  *eventloop.Loop
	keeps bool
}

func (r *resumedIn) ResumeIn(l *eventloop.Loop) (done bool) {
	r.loop = l
	return !r.keeps
}

// Who can go on in the loop of the one that ends an exchange does so; others are resumed.
func TestEndingInALoop(t *testing.T) {
	var e eventloop.Ending
	var in resumedIn
	var out, late resumed
	e.Then(&in)
	e.Then(&out)
	l := eventloop.New()
	defer l.Close()
	e.EndIn(l)
	e.Then(&late)
	if in.loop != l || in.Load() != 0 || out.Load() != 1 || late.Load() != 1 {
		t.Errorf("loop %v, resumed %d, %d and %d times", in.loop, in.Load(), out.Load(), late.Load())
	}
}

// An exchange is used again only if who began it has waited, in a loop, and nobody keeps it.
func TestOwnedEnding(t *testing.T) {
	l := eventloop.New()
	defer l.Close()
	for name, tc := range map[string]struct {
		wait func(e *eventloop.Ending)
		loop *eventloop.Loop
		done bool
	}{
		"nobody":             {func(*eventloop.Ending) {}, l, false},
		"the owner":          {func(e *eventloop.Ending) { e.ThenOwner(&resumedIn{}) }, l, true},
		"without a loop":     {func(e *eventloop.Ending) { e.ThenOwner(&resumedIn{}) }, nil, false},
		"another one":        {func(e *eventloop.Ending) { e.Then(&resumedIn{}) }, l, false},
		"both":               {func(e *eventloop.Ending) { e.Then(&resumedIn{}); e.ThenOwner(&resumedIn{}) }, l, true},
		"one that keeps":     {func(e *eventloop.Ending) { e.Then(&resumedIn{keeps: true}); e.ThenOwner(&resumedIn{}) }, l, false},
		"an owner that does": {func(e *eventloop.Ending) { e.ThenOwner(&resumedIn{keeps: true}) }, l, false},
		"one outside":        {func(e *eventloop.Ending) { e.ThenOwner(&resumedIn{}); e.Then(&resumed{}) }, l, false},
	} {
		var e eventloop.Ending
		for range 2 {
			tc.wait(&e)
			if got := e.EndIn(tc.loop); got != tc.done || !e.Over() {
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
		var e eventloop.Ending
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

// An Ending that is used again has forgotten who owned it: without an owner it is never done with.
func TestEndingForgetsItsOwner(t *testing.T) {
	var e eventloop.Ending
	e.ThenOwner(&resumedIn{})
	e.EndIn(nil)
	for range 2 {
		if e.Anew(); e.EndIn(nil) {
			t.Error("it is done with, but nobody began it")
		}
	}
}
