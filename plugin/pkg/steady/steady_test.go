package steady_test

import (
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/steady"
	"github.com/coredns/coredns/plugin/pkg/steady/steadytest"
)

// TestSteady has somebody set the clock of the machine back and ahead: what is kept ends no later for it.
func TestSteady(t *testing.T) {
	start := time.Now()
	c := steady.NewClock(start)
	for _, step := range []struct {
		after, set, want time.Duration // since the start
	}{
		{0, 0, 0},
		{time.Second, 0, time.Second},
		{2 * time.Second, -time.Hour, 2 * time.Second},
		{3 * time.Second, -time.Hour, 3 * time.Second},
		{4 * time.Second, 0, 4 * time.Second}, // set right again
		{5 * time.Second, 2 * time.Hour, 2*time.Hour + 5*time.Second},
		{6 * time.Second, 0, 2*time.Hour + 6*time.Second}, // back: time goes on
		{7 * time.Second, time.Hour, 2*time.Hour + 7*time.Second},
		{8 * time.Second, 3 * time.Hour, 3*time.Hour + 8*time.Second},
	} {
		now := steadytest.Stepped(start.Add(step.after), step.set)
		if now.Sub(start) != step.after || now.UnixNano()-start.UnixNano() != int64(step.after+step.set) {
			t.Fatalf("made %s", now)
		}
		if got := c.Passed(now); got != step.want {
			t.Errorf("after %s, set by %s: %s, want %s", step.after, step.set, got, step.want)
		}
	}
}
