package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// What has ended goes, and is not told any more; what may still be served when it is stale stays.
func TestSweep(t *testing.T) {
	for stale, want := range map[time.Duration]int{0: 10, time.Hour: 110} {
		w := newWorld(t, func(s *settings) { s.stale = stale })
		w.oneLane = true
		w.c.view = fmt.Sprint("sweep ", stale)
		for i := range 110 {
			name := fmt.Sprintf("n%d.example.org.", i)
			if i < 100 {
				w.says(0, name+" 60 IN A 192.0.2.1")
			} else {
				w.says(0, name+" 600 IN A 192.0.2.1")
			}
			w.ask(name, dns.TypeA, from([]string{"192.0.2.0/24"}[:i%2]...))
		}
		octets := w.c.positive.octets.Load()
		w.clock.Store(60)
		w.c.sweep(0, shards)
		if got := w.c.positive.len(); got != want {
			t.Errorf("%d entries are left, want %d", got, want)
		}
		if got := testutil.ToFloat64(cacheSize.WithLabelValues("", Success, ".", w.c.view)); got != float64(want) {
			t.Errorf("the gauge says %v, want %d", got, want)
		}
		if got := w.c.positive.octets.Load(); (got < octets) != (want == 10) || got <= 0 {
			t.Errorf("%d octets of %d are left", got, octets)
		}
		before := w.asked.Load()
		w.says(0, "x. 60 IN A 192.0.2.1")
		for i := 100; i < 110; i++ {
			w.ask(fmt.Sprintf("n%d.example.org.", i), dns.TypeA, from([]string{"192.0.2.0/24"}[:i%2]...))
		}
		if w.asked.Load() != before {
			t.Error("what has not ended is not there")
		}
	}
}

// Variants end one by one.
func TestSweepOfVariants(t *testing.T) {
	w := newWorld(t, nil)
	w.says(0, "www.example.org. 60 IN A 192.0.2.1")
	w.ask("www.example.org.", dns.TypeA, from("192.0.2.0/24"))
	w.says(0, "www.example.org. 600 IN A 192.0.2.1")
	w.ask("www.example.org.", dns.TypeA, from("198.51.100.0/24"))
	w.clock.Store(60)
	w.c.sweep(0, shards)
	if w.c.positive.len() != 1 {
		t.Errorf("%d answers", w.c.positive.len())
	}
	w.clock.Store(600)
	w.c.sweep(0, shards)
	if n, octets := w.c.positive.len(), w.c.positive.octets.Load(); n != 0 || octets != 0 {
		t.Errorf("%d answers with %d octets", n, octets)
	}
}

// The sweeper sweeps by itself, and ends.
func TestSweeper(t *testing.T) {
	w := newWorld(t, nil)
	w.says(0, aRecord)
	w.count("example.org.", dns.TypeA)
	w.clock.Store(300)
	w.c.startSweeping(time.Millisecond)
	eventually.Holds(t, "the sweep", func() bool { return w.c.positive.len() == 0 })
	w.c.stopSweeping()
	w.c.stopSweeping()
}
