package zonefile

import (
	"os"
	"path/filepath"
)

// Replace puts what write writes in the place of the file path: all of it, and on the disk, or nothing. Meanwhile
// it is in a file of the same folder whose name is made of pattern, as os.CreateTemp does it. When write returns,
// all must be in the file; finish, which may be nil, is called with the name of the closed file just before it
// takes its place.
func Replace(path, pattern string, write func(*os.File) error, finish func(name string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), pattern)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if finish != nil {
		if err := finish(f.Name()); err != nil {
			return err
		}
	}
	return os.Rename(f.Name(), path)
}
