package database

import (
	"os"
	"path/filepath"
)

// Here a file that is open keeps its name, unless all who have it open let it go. Package os does that for files below
// a root only, and renames files there over others that are open.

// openFile opens a file that is there, or makes one that only its owner reads.
func openFile(path string, create bool) (*os.File, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(filepath.Base(path), openFlags(create), 0o600)
}

// rename has a file take the place of another one in its folder.
func rename(from, to string) error {
	root, err := os.OpenRoot(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Rename(filepath.Base(from), filepath.Base(to))
}
