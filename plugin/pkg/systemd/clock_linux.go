package systemd

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// Reloading tells the manager that a new configuration is read. Ready tells that it serves, or that the old one does.
func Reloading() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return Notify("RELOADING=1")
	}
	return Notify("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(now.Nano()/1000, 10))
}
