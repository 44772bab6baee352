package eventloop_test

import (
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

func TestUsual(t *testing.T) {
	var u eventloop.Usual
	for _, tc := range []struct {
		fast, slow time.Duration // in turn, but every third time
		want       time.Duration
	}{
		{20 * time.Millisecond, 20 * time.Millisecond, eventloop.LeastPatience},  // less makes no difference
		{400 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond}, // it has become slow
		{20 * time.Millisecond, 2 * time.Second, eventloop.LeastPatience},
	} {
		for i := range 600 {
			took := tc.fast
			if i%3 == 2 {
				took = tc.slow
			}
			u.Note(took)
		}
		if got := u.Patience(); got < tc.want*9/10 || got > tc.want*11/10 {
			t.Errorf("%+v: got %v", tc, got)
		}
	}
}

// Silence lasts from the first question, or from what was heard while others waited.
func TestSilence(t *testing.T) {
	var s eventloop.Silence
	longer := func(now int64, want bool) {
		t.Helper()
		if got := s.Longer(10, now); got != want {
			t.Errorf("at %d: %v", now, got)
		}
	}
	longer(100, false)
	s.Ask(100)
	s.Ask(105)
	longer(110, false)
	longer(111, true)
	s.Done(100, 111, 10)
	s.Heard(111)
	longer(121, false)
	longer(122, true)
	s.Done(105, 122, 10)
	s.Heard(122)
	longer(200, false)

	for _, at := range []int64{200, 300, 400} { // are given up soon
		longer(at, false)
		s.Ask(at)
		s.Done(at, at+2, 10)
	}
	longer(402, true)
	s.Heard(403)
	longer(500, false)
	s.Ask(500) // is given up late
	s.Done(500, 511, 10)
	longer(511, true)
	s.Ask(520)
	longer(520, true)
	s.Done(520, 521, 10)
	s.Heard(521)
	longer(600, false)
}
