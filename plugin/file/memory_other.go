//go:build !linux

package file

import "math"

// installed is the octets of memory that the machine has, math.MaxInt64 if it does not say.
func installed() int64 { return math.MaxInt64 }
