package file

import (
	"math"

	"golang.org/x/sys/unix"
)

// installed is the octets of memory that the machine has, math.MaxInt64 if it does not say.
func installed() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return math.MaxInt64
	}
	return int64(min(uint64(info.Totalram)*uint64(info.Unit), math.MaxInt64))
}
