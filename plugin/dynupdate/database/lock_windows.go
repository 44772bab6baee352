package database

import (
	"os"

	"golang.org/x/sys/windows"
)

// errLocked is what lock returns if another process has the file.
const errLocked = windows.ERROR_LOCK_VIOLATION

// lock locks a file until it is closed. Windows lets nobody read what is locked, not even this process by another
// descriptor: so that is an octet which no file has.
func lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{OffsetHigh: 1 << 30})
}
