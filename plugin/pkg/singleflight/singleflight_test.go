package singleflight_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/coredns/coredns/plugin/pkg/singleflight"
)

func TestDo(t *testing.T) {
	var g singleflight.Group
	failure := errors.New("failure")
	for i, want := range []error{nil, failure} {
		val, err := g.Do(1, func() (any, error) { return i, want })
		if val != i || !errors.Is(err, want) {
			t.Errorf("got %v, %v, want %d, %v", val, err, i, want)
		}
	}
}

// inFlight starts a call for key 1 that runs until release is closed, and then ends with end.
func inFlight(g *singleflight.Group, release chan struct{}, end func() (any, error)) {
	go func() {
		defer func() { _ = recover() }()
		_, _ = g.Do(1, func() (any, error) {
			<-release
			return end()
		})
	}()
	synctest.Wait()
}

func TestCallersShareACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g singleflight.Group
		release := make(chan struct{})
		failure := errors.New("failure")
		inFlight(&g, release, func() (any, error) { return "shared", failure })

		var calls, shared atomic.Int32
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				val, err := g.Do(1, func() (any, error) {
					calls.Add(1)
					return nil, nil
				})
				if val == "shared" && errors.Is(err, failure) {
					shared.Add(1)
				}
			})
		}
		synctest.Wait()
		// Another key does not wait.
		if val, _ := g.Do(2, func() (any, error) { return "other", nil }); val != "other" {
			t.Errorf("other key: got %v", val)
		}
		close(release)
		wg.Wait()
		if calls.Load() != 0 || shared.Load() != 10 {
			t.Errorf("got %d calls, %d shared results, want 0 and 10", calls.Load(), shared.Load())
		}
		// The next one is a call of its own.
		if val, err := g.Do(1, func() (any, error) { return "new", nil }); val != "new" || err != nil {
			t.Errorf("afterwards: got %v, %v", val, err)
		}
	})
}

func TestWaitersOutliveACallThatDoesNotReturn(t *testing.T) {
	for name, end := range map[string]func() (any, error){
		"panic":  func() (any, error) { panic("no") },
		"Goexit": func() (any, error) { runtime.Goexit(); return nil, nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			var g singleflight.Group
			release := make(chan struct{})
			inFlight(&g, release, end)

			var failed atomic.Int32
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					if val, err := g.Do(1, func() (any, error) { return nil, nil }); val == nil && err != nil {
						failed.Add(1)
					}
				})
			}
			synctest.Wait()
			close(release)
			wg.Wait() // for ever, if a waiter is stranded: synctest reports that
			if got := failed.Load(); got != 10 {
				t.Errorf("%s: %d of 10 waiters got an error", name, got)
			}
			if val, err := g.Do(1, func() (any, error) { return "new", nil }); val != "new" || err != nil {
				t.Errorf("%s: afterwards: got %v, %v", name, val, err)
			}
		})
	}
}

func TestPanicReachesTheCaller(t *testing.T) {
	var g singleflight.Group
	defer func() {
		if got := recover(); got != "no" {
			t.Errorf("recovered %v", got)
		}
	}()
	_, _ = g.Do(1, func() (any, error) { panic("no") })
	t.Error("the panic was swallowed")
}
