// Package stamp tells whether a file is still the one that was read, without reading it. Start at Of.
package stamp

import (
	"errors"
	"os"
	"time"
)

// Stamp is what a file looked like: when it was changed, its size in octets, and which file it is. Two that are equal
// (==) say that nobody has touched the file in between, as far as its file system tells time. The zero Stamp is that of
// no file.
type Stamp struct {
	there       bool
	mtime, size int64
	inode       uint64
}

// Of is the stamp of a file that was looked at.
func Of(info os.FileInfo) Stamp {
	return Stamp{true, info.ModTime().UnixNano(), info.Size(), inode(info)}
}

// At is the stamp of the file that has a path now. One that cannot be looked at is none.
func At(path string) Stamp {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{}
	}
	return Of(info)
}

// IsPipe reports whether a path leads to a pipe. Who opens one waits for a writer, which may never come.
func IsPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

var errPipe = errors.New("a pipe is read at the start only")

// NoPipe is an error if one of paths leads to a pipe. Who looks at files again and again asks this before each is
// opened: else whoever writes to the pipe would be waited for, and the end of the server would wait as well. It is not
// inlined: nobody is in a hurry, and its callers are many.
//
//go:noinline
func NoPipe(paths ...string) error {
	for _, p := range paths {
		if IsPipe(p) {
			return &os.PathError{Op: "open", Path: p, Err: errPipe}
		}
	}
	return nil
}

// Changed is when the file was changed.
func (s Stamp) Changed() time.Time { return time.Unix(0, s.mtime) }
