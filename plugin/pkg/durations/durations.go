// Package durations reads lengths of time from configurations. The function is pure: it looks at no clock. Start at
// NewDurationFromArg.
package durations

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// maxSeconds is the greatest number of whole seconds that a time.Duration holds.
const maxSeconds = math.MaxInt64 / int64(time.Second)

// NewDurationFromArg reads a duration as time.ParseDuration does, or a whole number of seconds without a unit.
func NewDurationFromArg(arg string) (time.Duration, error) {
	if seconds, err := strconv.ParseInt(arg, 10, 64); err == nil && -maxSeconds <= seconds && seconds <= maxSeconds {
		return time.Duration(seconds) * time.Second, nil
	}
	d, err := time.ParseDuration(arg)
	if err != nil {
		return 0, fmt.Errorf("failed to parse duration '%s'", arg)
	}
	return d, nil
}
