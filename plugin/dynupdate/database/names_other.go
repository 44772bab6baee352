//go:build !windows

package database

import "os"

// openFile opens a file that is there, or makes one that only its owner reads.
func openFile(path string, create bool) (*os.File, error) {
	return os.OpenFile(path, openFlags(create), 0o600)
}

// rename has a file take the place of another one in its folder.
func rename(from, to string) error { return os.Rename(from, to) }
