package hostaddrs

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestRecent(t *testing.T) {
	now := Now()
	if !slices.Contains(now, netip.MustParseAddr("127.0.0.1")) {
		t.Skip("this machine has no 127.0.0.1:", now)
	}
	if !slices.Equal(Recent(), now) {
		t.Errorf("%v, want %v", Recent(), now)
	}
	if n := testing.AllocsPerRun(100, func() { Recent() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFresh(t *testing.T) {
	n := 0
	f := fresh[int]{life: time.Hour, make: func() int { n++; return n }}
	for range 3 {
		if got := f.get(); got != 1 {
			t.Errorf("made %d times", got)
		}
	}
	if until := time.Duration(f.until.Load()); until > time.Since(started)+time.Hour {
		t.Errorf("good for %v: a clock that is set back would make it so", until)
	}
	f.until.Store(0) // an hour has passed
	for range 3 {
		if got := f.get(); got != 2 {
			t.Errorf("made %d times", got)
		}
	}
}
