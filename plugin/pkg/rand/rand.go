// Package rand gives random numbers for choices that need no secrecy: the order of upstreams, of addresses.
//
// Numbers come from the generator that the Go runtime keeps for each thread (math/rand/v2), so that goroutines
// which draw at the same time do not wait for each other.
package rand

import "math/rand/v2"

// Rand draws random numbers. Any number of goroutines may use one Rand; the zero Rand is ready for use.
type Rand struct{}

// New returns a Rand. seed does not matter and no sequence can be repeated: numbers that several goroutines draw
// come in no fixed order anyway.
func New(seed int64) *Rand { return new(Rand) }

// Int returns a number between 0 and the greatest int.
func (r *Rand) Int() int { return rand.Int() }

// Perm returns the numbers from 0 to n-1 in random order. It panics if n is negative.
func (r *Rand) Perm(n int) []int { return rand.Perm(n) }
