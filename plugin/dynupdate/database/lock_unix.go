//go:build unix

package database

import (
	"os"

	"golang.org/x/sys/unix"
)

// errLocked is what lock returns if another process has the file.
const errLocked = unix.EWOULDBLOCK

// lock locks a file until it is closed.
func lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
