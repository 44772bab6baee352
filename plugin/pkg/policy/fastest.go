package policy

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Timed tells how long upstreams take.
type Timed interface {
	// Took is how long replies of upstream i take on the whole, 0 if that is unknown.
	Took(i int) time.Duration
}

// Measuring is a Policy that goes by how long upstreams take. Its Order knows nothing of that.
type Measuring interface {
	Policy
	// OrderBy is Order with that knowledge.
	OrderBy(dst []int, n int, t Timed) []int
}

// Fastest mostly takes the upstream first that replies soonest: an upstream's chance falls with the third power of
// its time, so that equal ones share the load, one that takes twice as long gets an eighth of it, and none is ever
// forgotten, lest it became quick. Behind it come the others, the quickest first.
type Fastest struct {
	chance func() float64 // from 0 to 1; nil is math/rand's
}

// least is the chance of the slowest upstream, if that of the quickest is 1.
const least = 1.0 / 128

// OrderBy draws the first one and sorts the others.
func (f *Fastest) OrderBy(dst []int, n int, t Timed) []int {
	dst = count(dst, n)
	order := dst[len(dst)-n:]
	if n < 2 {
		return dst
	}
	best := time.Duration(1<<63 - 1)
	for i := range n {
		if d := t.Took(i); d > 0 {
			best = min(best, d)
		}
	}
	weight := func(i int) float64 {
		d := t.Took(i)
		if d <= best { // nothing is known of it: it is as good as the best
			return 1
		}
		r := float64(best) / float64(d)
		return max(r*r*r, least)
	}
	sum := 0.0
	for i := range n {
		sum += weight(i)
	}
	lot, first := f.lot()*sum, n-1
	for i := range n {
		if lot -= weight(i); lot < 0 {
			first = i
			break
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case a == first || b == first:
			if a == first {
				return -1
			}
			return 1
		}
		return int(min(max(t.Took(a)-t.Took(b), -1), 1))
	})
	return dst
}

func (f *Fastest) lot() float64 {
	if f.chance != nil {
		return f.chance()
	}
	return rand.Float64()
}

// Order draws lots.
func (*Fastest) Order(dst []int, n int) []int { return new(Random).Order(dst, n) }

func (*Fastest) String() string { return "fastest" }
