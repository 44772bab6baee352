package zonefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Replace puts what write writes in the place of the file path: all of it, and on the disk, or nothing. If it is only
// not known whether the new name is on the disk, that is an error, too, though the file is there. Meanwhile it is in a
// file of the same folder whose name is made of pattern, as os.CreateTemp does it. When write returns, all must be in
// the file; finish, which may be nil, is called with the name of the closed file just before it takes its place.
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
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncFolder(path)
}

// unfinishedAge is how long nobody has written to a file that nobody writes any more.
const unfinishedAge = 10 * time.Minute

// Tidy removes from a folder what Replace was writing when its process was killed: files whose names fit a pattern,
// which is to be one that nobody else's names fit, if they are old enough.
func Tidy(dir, pattern string, now time.Time) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, f := range files {
		if ok, _ := filepath.Match(pattern, f.Name()); !ok {
			continue
		}
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > unfinishedAge {
			_ = os.Remove(filepath.Join(dir, f.Name())) // it harms nobody if it stays
		}
	}
}

// SyncFolder has the names in the folder of path be on the disk. Only then is a file that was made or renamed there
// found under its name when the machine has gone down. It is no error that a system cannot do that, or not for a folder
// that this process may not read: then nobody can.
func SyncFolder(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err == nil {
		err = syncDir(dir)
		dir.Close()
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// syncDir is a variable for tests.
var syncDir = (*os.File).Sync
