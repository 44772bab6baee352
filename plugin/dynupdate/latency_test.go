package dynupdate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// What BenchmarkLatency does at the same time.
const (
	queriesPerSecond = 10_000
	updatesPerSecond = 2_000
	updateWriters    = 16
	latencyRounds    = 4
)

// BenchmarkLatency is how late queries are answered beside updates, which are synced, and without them; both in turn, so
// that whatever else the machine does falls on both. It reports the 99th percentiles in microseconds, and their ratio.
func BenchmarkLatency(b *testing.B) {
	for _, hosts := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			dir := b.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "db"), []byte(manyHosts(hosts)), 0o600); err != nil {
				b.Fatal(err)
			}
			bed := newBed(b, dir, fmt.Sprintf("max_records %d\nmax_bytes 1000000000\nlog off\ndatabase %s/zone.db", 10*hosts+100, dir))
			qs := questions(b, hosts)
			var quiet, busy []time.Duration
			for b.Loop() {
				for range latencyRounds {
					quiet = append(quiet, bed.lateness(b, qs, time.Second)...)
					stop := bed.writers(b, hosts)
					busy = append(busy, bed.lateness(b, qs, time.Second)...)
					stop()
				}
			}
			before, beside := percentile(quiet, 99), percentile(busy, 99)
			b.ReportMetric(float64(before.Microseconds()), "quiet-µs")
			b.ReportMetric(float64(beside.Microseconds()), "busy-µs")
			b.ReportMetric(float64(beside)/float64(before), "ratio")
		})
	}
}

// lateness is how long after their time queries were answered.
func (b *bed) lateness(tb testing.TB, qs [][]byte, span time.Duration) (all []time.Duration) {
	var q wire.Query
	var w wire.Reply
	buf := make([]byte, 0, 2048)
	begun := time.Now()
	for i := range int(span.Seconds() * queriesPerSecond) {
		due := begun.Add(time.Duration(i) * time.Second / queriesPerSecond)
		time.Sleep(time.Until(due))
		if !q.Parse(qs[rand.IntN(len(qs))]) {
			tb.Fatal("it is no query")
		}
		w.Reset(buf)
		b.d.ServeWire(context.Background(), &w, &q)
		all = append(all, time.Since(due))
	}
	return all
}

// writers makes updates at a steady rate until it is told to stop.
func (b *bed) writers(tb testing.TB, hosts int) (stop func()) {
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range updateWriters {
		wg.Go(func() {
			tick := time.NewTicker(time.Second * updateWriters / updatesPerSecond)
			defer tick.Stop()
			for {
				select {
				case <-done:
					return
				case <-tick.C:
					b.put(tb, rand.IntN(hosts))
				}
			}
		})
	}
	return func() { close(done); wg.Wait() }
}

// percentile is the value that p of a hundred are not above.
func percentile(all []time.Duration, p int) time.Duration {
	slices.Sort(all)
	return all[len(all)*p/100]
}
