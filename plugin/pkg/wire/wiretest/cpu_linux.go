package wiretest

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what the thread has worked so far. Other work on the machine does not count.
func cpuTime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return time.Since(start)
	}
	return time.Duration(ts.Nano())
}
