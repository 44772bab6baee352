//go:build unix

package secondary

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockTime is how long another process may have a folder locked, which needs it for moments only.
const lockTime = 10 * time.Second

// lockDir locks a folder, for those who store zones there.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
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
