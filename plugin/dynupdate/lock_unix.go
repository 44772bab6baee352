//go:build unix

package dynupdate

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks a database for this process. It reports false if another one has it.
func lockFile(path string) (unlock func(), ok bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, false, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
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
