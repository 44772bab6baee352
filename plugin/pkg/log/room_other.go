//go:build !linux

package log

import (
	"math"
	"os"
)

// roomOf is not known on this system.
func roomOf(*os.File, int) int { return math.MaxInt }
