// Package rand gives random numbers for choices that need no secrecy: the order of upstreams, of addresses.
//
// A seed gives the same numbers each time. Goroutines that share one Rand draw in turns; where no sequence is to be
// repeated, math/rand/v2 draws without waiting. Start at New.
package rand

import (
	"math/rand"
	"sync"
)

// Rand draws random numbers. Any number of goroutines may use one Rand; the zero Rand has a seed of its own.
type Rand struct {
	mu sync.Mutex
	r  *rand.Rand // guarded by mu; nil until the first use of a zero Rand
}

// New returns a Rand whose numbers are those of math/rand for seed.
func New(seed int64) *Rand { return &Rand{r: rand.New(rand.NewSource(seed))} }

// Int returns a number between 0 and the greatest int.
func (r *Rand) Int() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source().Int()
}

// Perm returns the numbers from 0 to n-1 in random order. It panics if n is negative.
func (r *Rand) Perm(n int) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source().Perm(n)
}

// source is what r draws from; the caller holds mu.
func (r *Rand) source() *rand.Rand {
	if r.r == nil {
		r.r = rand.New(rand.NewSource(rand.Int63()))
	}
	return r.r
}
