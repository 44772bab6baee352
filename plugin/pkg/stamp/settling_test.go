package stamp

import (
	"testing"
	"time"
)

// A file is not read while it may still be written, but not left alone for ever either.
func TestSettling(t *testing.T) {
	var s Settling
	now := time.Now()
	for i, want := range []time.Duration{900, 900, 900, 0, 900} {
		at := now.Add(time.Duration(i) * time.Second)
		if wait := s.Wait(at.Add(-100*time.Millisecond), at, 3*time.Second); wait != want*time.Millisecond {
			t.Errorf("changed all the time, after %d seconds: %v", i, wait)
		}
	}
	// Others have read it meanwhile: the next change is one of its own.
	for i, want := range []time.Duration{900, 0} {
		at := now.Add(time.Hour + time.Duration(i)*3*time.Second)
		if wait := s.Wait(at.Add(-100*time.Millisecond), at, 3*time.Second); wait != want*time.Millisecond {
			t.Errorf("changed later, and %d seconds after that: %v", 3*i, wait)
		}
	}
	for _, tc := range []struct{ changed, every, want time.Duration }{
		{-100 * time.Millisecond, 300 * time.Millisecond, 50 * time.Millisecond},
		{-time.Second, time.Minute, 0},
		{time.Hour, time.Minute, 0},
		{0, 0, 0},
	} {
		if wait := new(Settling).Wait(now.Add(tc.changed), now, tc.every); wait != tc.want {
			t.Errorf("changed at %v, looked at each %v: %v, want %v", tc.changed, tc.every, wait, tc.want)
		}
	}
}
