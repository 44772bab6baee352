package policy

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// Latency is how long one upstream took to reply, of late: on the whole, and at the slow end. Old replies count
// less and less. Any number of goroutines may use it; none waits for another. The zero Latency knows nothing yet.
type Latency struct {
	smooth  atomic.Int64 // nanoseconds; 0 is unknown
	slow    atomic.Int64 // 95 % of the replies took less; 0 is unknown
	noted   atomic.Uint32
	late    atomic.Uint32 // of these, those of Outlasted that are in no bucket
	buckets [bucketCount]atomic.Uint32
	judging sync.Mutex // one judges at a time, or what two take out would be more than there is
}

const (
	bucketUnit  = 13 // the first bucket has what took less than 2^13 ns
	bucketCount = 72 // four for each doubling, the last one for all above 2 s
	judgeEvery  = 32 // replies
	enough      = 512
	penalty     = 100 * time.Millisecond
	maxPenalty  = 5 * time.Second
)

// Note takes account of a reply that took so long.
func (l *Latency) Note(took time.Duration) {
	took = max(took, 1)
	l.smoothen(took)
	l.buckets[bucketOf(took)].Add(1)
	if l.noted.Add(1)%judgeEvery == 0 {
		l.judge(0)
	}
}

// Outlasted takes account of a reply that had not come after that long, when another upstream's came: it was lost, or
// takes longer still. What is slow stays as it is unless that becomes usual: of queries that are lost one in three at
// most, and the others are answered as quickly as ever.
func (l *Latency) Outlasted(after time.Duration) {
	l.smoothen(2 * max(after, 1))
	l.late.Add(1)
	if l.noted.Add(1)%judgeEvery == 0 {
		l.judge(after)
	}
}

// smoothen brings smooth nearer to what the last reply took.
func (l *Latency) smoothen(took time.Duration) {
	for {
		old := l.smooth.Load()
		now := old + (int64(took)-old)/8
		if old == 0 {
			now = int64(took)
		}
		if l.smooth.CompareAndSwap(old, max(now, 1)) {
			return
		}
	}
}

// Missed takes account of a reply that never came.
func (l *Latency) Missed() {
	l.smooth.Store(int64(min(max(2*l.Smooth(), penalty), maxPenalty)))
}

// Smooth is how long a reply takes on the whole, 0 while that is unknown.
func (l *Latency) Smooth() time.Duration { return time.Duration(l.smooth.Load()) }

// Slow is within what time 95 of 100 replies come, 0 while that is unknown.
func (l *Latency) Slow() time.Duration { return time.Duration(l.slow.Load()) }

// judge works out what is slow, and lets old replies count half once there are many. after is that of Outlasted.
func (l *Latency) judge(after time.Duration) {
	if !l.judging.TryLock() {
		return
	}
	defer l.judging.Unlock()
	var counts [bucketCount]uint32
	all := uint32(0)
	for i := range counts {
		counts[i] = l.buckets[i].Load()
		all += counts[i]
	}
	late := l.late.Load()
	if late > all/2 { // they are late, and not lost
		i := bucketOf(2 * max(after, l.Slow()))
		l.late.Add(-late)
		l.buckets[i].Add(late)
		counts[i] += late
		all += late
		late = 0
	}
	left := all / 20
	for i := bucketCount - 1; i >= 0; i-- {
		if counts[i] > left {
			l.slow.Store(int64(endOf(i)))
			break
		}
		left -= counts[i]
	}
	if all+late >= enough {
		l.late.Add(-(late - late/2))
		for i, n := range counts {
			if n > 0 {
				l.buckets[i].Add(-(n - n/2))
			}
		}
	}
}

// bucketOf is the bucket of a time: the exponent and two more bits of it.
func bucketOf(d time.Duration) int {
	v := uint64(d) >> bucketUnit
	if v < 4 {
		return int(v)
	}
	e := bits.Len64(v) - 1
	return min((e-1)*4+int(v>>(e-2)&3), bucketCount-1)
}

// endOf is where a bucket ends.
func endOf(i int) time.Duration {
	if i < 4 {
		return time.Duration(i+1) << bucketUnit
	}
	return time.Duration(4+i%4+1) << (bucketUnit + i/4 - 1)
}
