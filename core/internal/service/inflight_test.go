package service

import (
	"sync"
	"testing"
)

func open(c <-chan struct{}) bool {
	select {
	case <-c:
		return false
	default:
		return true
	}
}

func TestInflight(t *testing.T) {
	var f Inflight
	if f.Busy() || f.Count() != 0 {
		t.Error("busy at first")
	}
	f.Add()
	f.Add()
	if !f.Busy() || f.Count() != 2 {
		t.Errorf("%d in flight", f.Count())
	}
	f.Done()
	drained := f.Drained()
	if !open(drained) {
		t.Error("drained with one in flight")
	}
	f.Done()
	<-drained
	if f.Busy() || open(f.Drained()) {
		t.Error("none is in flight, and it is not drained")
	}
	f.Add() // a query that is told at once that nobody waits for it: see Seat.Enter
	f.Done()
}

// Whenever it is asked for, the end is told.
func TestDrainedRaces(t *testing.T) {
	for range 200 {
		var f Inflight
		var all sync.WaitGroup
		for range 4 {
			f.Add()
			all.Go(f.Done)
		}
		<-f.Drained()
		if f.Busy() {
			t.Fatal("busy")
		}
		all.Wait()
	}
}
