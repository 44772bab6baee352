//go:build unix

package memory

import "syscall"

// Files is how many files and sockets the process may have open.
func Files() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 1024
	}
	return int(min(uint64(r.Cur), 1<<20))
}
