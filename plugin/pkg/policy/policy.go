// Package policy decides in which order upstreams are tried. It knows them by their number only, so that any
// kind of upstream can be chosen by it.
//
//	Policy.Order(n) ──▶ 2 0 1    the upstreams' numbers, the first to be tried first
//
// A Measuring policy is told how long each upstream takes; a Latency is where that is kept.
//
// Policies may be used by any number of goroutines. Start at Named.
package policy

import (
	"math/rand/v2"
	"sync/atomic"
)

// Policy is a way to put upstreams into an order.
type Policy interface {
	// Order appends the numbers from 0 to n-1, in the order of the policy, to dst.
	Order(dst []int, n int) []int
	// String is the policy's name.
	String() string
}

// Names are the policies there are.
var Names = []string{"random", "round_robin", "sequential", "fastest"}

// Named is a new policy of a name, nil if there is none of that name.
func Named(name string) Policy {
	switch name {
	case "random":
		return new(Random)
	case "round_robin":
		return new(RoundRobin)
	case "sequential":
		return new(Sequential)
	case "fastest":
		return new(Fastest)
	}
	return nil
}

// List is from in the order of p.
func List[T any](p Policy, from []T) []T {
	order := p.Order(make([]int, 0, len(from)), len(from))
	list := make([]T, len(from))
	for i, n := range order {
		list[i] = from[n]
	}
	return list
}

// Random takes any order, each as often as the others.
type Random struct{}

// Order draws lots.
func (*Random) Order(dst []int, n int) []int {
	dst = count(dst, n)
	order := dst[len(dst)-n:]
	rand.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	return dst
}

func (*Random) String() string { return "random" }

// RoundRobin takes one upstream after the other first, and behind it the others as they are configured.
type RoundRobin struct{ next atomic.Uint32 }

// Order takes the next turn.
func (r *RoundRobin) Order(dst []int, n int) []int {
	if n == 0 {
		return dst
	}
	first := int((r.next.Add(1) - 1) % uint32(n))
	dst = append(dst, first)
	for i := range n {
		if i != first {
			dst = append(dst, i)
		}
	}
	return dst
}

func (*RoundRobin) String() string { return "round_robin" }

// Sequential takes the upstreams as they are configured.
type Sequential struct{}

// Order counts.
func (*Sequential) Order(dst []int, n int) []int { return count(dst, n) }

func (*Sequential) String() string { return "sequential" }

func count(dst []int, n int) []int {
	for i := range n {
		dst = append(dst, i)
	}
	return dst
}
