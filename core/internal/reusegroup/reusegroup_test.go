package reusegroup

import (
	"testing"
	"time"
)

// A day of a group, window by window: what the process uses, what the loop serves, and what becomes of it.
func TestGroup(t *testing.T) {
	now := time.Unix(1000, 0)
	var used time.Duration
	steered, steers := false, true
	g := newGroup(func(toFirst bool) bool {
		if steers {
			steered = toFirst
		}
		return steers
	}, func() time.Duration { return used }, false, now)
	half := false
	l := Loop{group: g, full: func(uintptr) bool { return half }}
	for i, step := range []struct {
		windows int
		load    float64
		handed  int // of 100 queries
		full    bool
		want    bool
	}{
		{1, 0.5, 0, false, true},
		{20, 0.94, 0, false, true},
		{1, 0.96, 0, false, false}, // too much for one
		{9, 0.1, 0, false, false},  // it stays spread for a while
		{2, 0.1, 0, false, true},
		{1, 0.2, 51, false, false}, // most go to workers
		{30, 0.2, 51, false, false},
		{1, 0.2, 49, false, true},
		{1, 0.2, 0, true, false},    // the queue fills
		{30, 0.8, 0, false, false},  // little enough for one, but not by much
		{1, 0.69, 0, false, true},   //
		{10, 0.69, 50, false, true}, // half is not most
	} {
		for range step.windows {
			now = now.Add(window)
			used += time.Duration(step.load * float64(window))
			half = step.full
			l.Served(0, 100, step.handed, true, now)
			half = false
		}
		if got := g.Consolidated(); got != step.want || got != steered {
			t.Fatalf("step %d: consolidated %v, the kernel was told %v", i, got, steered)
		}
	}
	g.Spread()
	if g.Consolidated() || steered {
		t.Error("it is not spread")
	}
	steers = false
	for range 20 {
		now = now.Add(window)
		l.Served(0, 100, 0, false, now)
	}
	if g.Consolidated() {
		t.Error("consolidated, though the kernel was not told")
	}
}

// Beside another process all sockets get datagrams, until that has had its time to end.
func TestBesideAnotherProcess(t *testing.T) {
	now := time.Unix(1000, 0)
	steered := true
	g := newGroup(func(toFirst bool) bool { steered = toFirst; return true }, func() time.Duration { return 0 }, true, now)
	l := Loop{group: g, full: func(uintptr) bool { return false }}
	for after := time.Duration(0); after <= besides; after += window {
		l.Served(0, 1, 0, false, now.Add(after))
		if want := after >= besides; g.Consolidated() != want || steered != want {
			t.Fatalf("after %v: consolidated %v, the kernel was told %v", after, g.Consolidated(), steered)
		}
	}
}

// Where the kernel does not let itself be told there is no group, and nothing happens.
func TestNoGroup(t *testing.T) {
	g := newGroup(func(bool) bool { return false }, func() time.Duration { return 0 }, false, time.Now())
	if g != nil {
		t.Fatal("there is one")
	}
	g.Spread()
	l := Loop{}
	l.Served(0, 64, 0, true, time.Now())
	if g.Consolidated() {
		t.Error("consolidated")
	}
}

// What the loop pays for a batch.
func BenchmarkServed(b *testing.B) {
	g := newGroup(func(bool) bool { return true }, func() time.Duration { return 0 }, false, time.Now())
	l := Loop{group: g, full: func(uintptr) bool { return false }}
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		l.Served(0, 20, 0, false, now)
	}
}
