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
	lane *wire.Lane
}

func (r *resumedIn) ResumeIn(l *wire.Lane) { r.lane = l }

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
