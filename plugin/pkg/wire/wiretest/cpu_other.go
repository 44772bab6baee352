//go:build !linux

package wiretest

import "time"

// cpuTime is the time that has passed.
func cpuTime() time.Duration { return time.Since(start) }
