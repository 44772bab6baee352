package policy

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// times is how long upstreams take, in milliseconds.
type times []int

func (t times) Took(i int) time.Duration { return time.Duration(t[i]) * time.Millisecond }

func TestFastestOrder(t *testing.T) {
	for _, tc := range []struct {
		took times
		lot  float64 // of all chances
		want string
	}{
		{times{30, 10, 20}, 0.5, "[1 2 0]"},
		{times{30, 10, 20}, 0.01, "[0 1 2]"}, // the slowest has its chance, too
		{times{30, 10, 20}, 0.95, "[2 1 0]"},
		{times{10, 10}, 0.4, "[0 1]"},
		{times{10, 10}, 0.6, "[1 0]"},
		{times{10, 0}, 0.9, "[1 0]"}, // nothing is known of the second
		{times{0, 0, 0}, 0.5, "[1 0 2]"},
		{times{5}, 0.5, "[0]"},
		{times{}, 0.5, "[]"},
		{times{10, 5000}, 0.9999999999, "[1 0]"},
		{times{10, 5000}, 0.99, "[0 1]"},
	} {
		f := &Fastest{chance: func() float64 { return tc.lot }}
		if got := fmt.Sprint(f.OrderBy([]int{}, len(tc.took), tc.took)); got != tc.want {
			t.Errorf("%v at %v: %s, want %s", tc.took, tc.lot, got, tc.want)
		}
	}
}

// Most go to the quickest, equal ones share, and each is asked now and then.
func TestFastestShares(t *testing.T) {
	const draws = 100000
	took := times{10, 10, 20, 1000}
	counts := make([]int, len(took))
	random := rand.New(rand.NewPCG(1, 2))
	f := &Fastest{chance: random.Float64}
	for range draws {
		counts[f.OrderBy(nil, len(took), took)[0]]++
	}
	for i, share := range []float64{0.468, 0.468, 0.0585, 0.0037} {
		if got := float64(counts[i]) / draws; got < 0.8*share || got > 1.2*share {
			t.Errorf("upstream %d gets %v of the queries, want %v", i, got, share)
		}
	}
}

func TestLatency(t *testing.T) {
	var l Latency
	if l.Smooth() != 0 || l.Slow() != 0 {
		t.Error("something is known before the first reply")
	}
	random := rand.New(rand.NewPCG(3, 4))
	between := func(what string, d, from, to time.Duration) {
		t.Helper()
		if d < from || d > to {
			t.Errorf("%s: %v, want %v to %v", what, d, from, to)
		}
	}
	for range 1000 { // evenly between 10 and 20 ms
		l.Note(10*time.Millisecond + time.Duration(random.Int64N(int64(10*time.Millisecond))))
	}
	between("smooth", l.Smooth(), 12*time.Millisecond, 18*time.Millisecond)
	between("slow", l.Slow(), 19*time.Millisecond, 25*time.Millisecond)
	for range 2000 { // it became quick
		l.Note(time.Millisecond)
	}
	between("smooth", l.Smooth(), 900*time.Microsecond, 1100*time.Microsecond)
	between("slow", l.Slow(), time.Millisecond, 1300*time.Microsecond)
	l.Missed()
	between("after a miss", l.Smooth(), 100*time.Millisecond, 100*time.Millisecond)
	for range 20 {
		l.Missed()
	}
	between("after many", l.Smooth(), 5*time.Second, 5*time.Second)
}

// Each time lies in a bucket that ends behind it, by a quarter of it at most.
func TestBuckets(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 100000 {
		d := time.Duration(random.Int64N(int64(1) << (13 + random.IntN(18))))
		if end := endOf(bucketOf(d)); end <= d || end > d+d/4+1<<bucketUnit {
			t.Fatalf("%v lies in bucket %d, which ends at %v", d, bucketOf(d), end)
		}
	}
	if b := bucketOf(time.Hour); b != bucketCount-1 {
		t.Error(b)
	}
}

func TestLatencyIsShared(t *testing.T) {
	var l Latency
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5000 {
				l.Note(time.Millisecond)
			}
		})
	}
	wg.Wait()
	if s := l.Slow(); s < time.Millisecond || s > 1300*time.Microsecond {
		t.Error(s)
	}
}

func BenchmarkNote(b *testing.B) {
	var l Latency
	b.ReportAllocs()
	for b.Loop() {
		l.Note(time.Millisecond)
	}
}

func BenchmarkFastest(b *testing.B) {
	f, took, dst := new(Fastest), times{10, 20, 30}, make([]int, 0, 3)
	b.ReportAllocs()
	for b.Loop() {
		dst = f.OrderBy(dst[:0], 3, took)
	}
}
