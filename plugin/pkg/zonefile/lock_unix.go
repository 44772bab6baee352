//go:build unix

package zonefile

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockTime is how long another process may have a folder locked, which needs it for moments only.
const lockTime = 10 * time.Second

// LockFolder locks a folder, for processes that replace files there by what they have read. It waits for another one
// that has it locked, but not for ever. Where the file system cannot do that, or this process may not read the folder,
// nothing is locked.
func LockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockTime); ; time.Sleep(5 * time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Now().After(end) {
			break
		}
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		f.Close()
		return nil, errors.New("the folder is locked by another process")
	case err != nil: // a file system that cannot do that
		f.Close()
		return func() {}, nil
	}
	return func() { f.Close() }, nil
}
