//go:build !linux

package validate

import "time"

var began = time.Now()

// cpuTime is the time that has passed: what else runs counts, too.
func cpuTime() time.Duration { return time.Since(began) }
