package up_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coredns/coredns/plugin/pkg/up"
)

var errDown = errors.New("down")

// counting returns a Func that counts its runs and fails the first failures times.
func counting(runs *atomic.Int32, failures int32) up.Func {
	return func() error {
		if runs.Add(1) <= failures {
			return errDown
		}
		return nil
	}
}

func TestRepeatsUntilUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		p := up.New()
		p.Start(time.Second)
		p.Do(counting(&runs, 3))
		for _, want := range []int32{1, 2, 3, 4, 4, 4} {
			synctest.Wait()
			if got := runs.Load(); got != want {
				t.Errorf("got %d runs, want %d", got, want)
			}
			time.Sleep(time.Second)
		}
		// It is idle again.
		p.Do(counting(&runs, 0))
		synctest.Wait()
		if got := runs.Load(); got != 5 {
			t.Errorf("got %d runs, want 5", got)
		}
	})
}

func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var runs, others atomic.Int32
		p := up.New()
		p.Start(time.Second)
		p.Do(func() error {
			runs.Add(1)
			<-release
			return nil
		})
		synctest.Wait()
		for range 10 {
			p.Do(counting(&others, 0))
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		if runs.Load() != 1 || others.Load() != 0 {
			t.Errorf("got %d runs and %d others, want 1 and 0", runs.Load(), others.Load())
		}
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		p := up.New()
		p.Start(time.Second)
		p.Do(counting(&runs, 100))
		time.Sleep(1500 * time.Millisecond)
		p.Stop()
		p.Stop()
		time.Sleep(time.Minute)
		if got := runs.Load(); got != 2 {
			t.Errorf("got %d runs, want the 2 before Stop", got)
		}
		// Never again, not even after Start.
		p.Do(counting(&runs, 0))
		p.Start(time.Second)
		p.Do(counting(&runs, 0))
		time.Sleep(time.Minute)
		if got := runs.Load(); got != 2 {
			t.Errorf("got %d runs after Stop", got)
		}
	})
}

func TestStopFromACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		p := up.New()
		p.Start(time.Second)
		p.Do(func() error {
			runs.Add(1)
			p.Stop()
			return errDown
		})
		time.Sleep(time.Minute)
		if got := runs.Load(); got != 1 {
			t.Errorf("got %d runs, want 1", got)
		}
	})
}

func TestWithoutInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		var p, unused up.Probe
		unused.Stop()
		p.Do(counting(&runs, 100))
		time.Sleep(time.Minute)
		if got := runs.Load(); got != 1 {
			t.Errorf("got %d runs, want 1", got)
		}
	})
}
