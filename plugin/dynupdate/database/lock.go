package database

import (
	"errors"
	"os"
)

// lockFile locks a database for this process. It reports false if another one has it.
func lockFile(path string) (unlock func(), ok bool, err error) {
	f, err := openFile(path, false)
	if err != nil {
		return nil, false, err
	}
	if err = lock(f); err == nil {
		ok, err = isAt(f, path)
	}
	if err != nil || !ok {
		f.Close()
		if errors.Is(err, errLocked) {
			err = nil
		}
		return nil, false, err
	}
	return func() { f.Close() }, true, nil
}

// isAt reports whether a file that has been locked is what stands at path: the one who had it locked before may have put
// another file in its place.
func isAt(f *os.File, path string) (bool, error) {
	was, err := f.Stat()
	if err != nil {
		return false, err
	}
	is, err := os.Stat(path)
	return err == nil && os.SameFile(is, was), err
}
