package dynupdate

import (
	"errors"

	"golang.org/x/sys/windows"
)

// lockFile locks a database for this process. It reports false if another one has it. Windows lets nobody read what is
// locked, not even this process by another descriptor: so that is an octet which no file has.
func lockFile(path string) (unlock func(), ok bool, err error) {
	f, err := openFile(path, false)
	if err != nil {
		return nil, false, err
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{OffsetHigh: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		f.Close()
		return nil, false, nil
	}
	if err == nil {
		ok, err = isAt(f, path)
	}
	if err != nil || !ok {
		f.Close()
		return nil, false, err
	}
	return func() { f.Close() }, true, nil
}
