package held

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A series goes with its last holder, and no other one goes with it.
func TestHeld(t *testing.T) {
	g := Of(prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "x", Help: "x"}, []string{"a", "b"}))
	g.Hold("1", "2")
	g.Hold("1", "2")
	g.Hold("1", "3")
	if n := testutil.CollectAndCount(g); n != 0 {
		t.Errorf("%d series before anything is told", n)
	}
	g.WithLabelValues("1", "2").Set(1)
	g.WithLabelValues("1", "3").Set(1)
	for i, want := range []int{2, 1, 0} {
		g.Release("1", []string{"2", "2", "3"}[i])
		if n := testutil.CollectAndCount(g); n != want {
			t.Errorf("after %d of them: %d series, want %d", i+1, n, want)
		}
	}
	g.Hold("1", "2") // as a configuration that has it again
	g.WithLabelValues("1", "2").Set(1)
	if n := testutil.CollectAndCount(g); n != 1 {
		t.Errorf("again: %d series", n)
	}
}
