package database

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestLockedFileKeepsItsName: who waits for a lock may get that of a file which another one has taken the place of.
func TestLockedFileKeepsItsName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zone.db")
	create := func(path string) *os.File {
		f, err := openFile(path, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := create(path), create(Beside(path))
	if is, err := isAt(first, path); !is || err != nil {
		t.Errorf("untouched: %t, %v", is, err)
	}
	if err := rename(Beside(path), path); err != nil {
		t.Fatal(err)
	}
	if is, err := isAt(first, path); is || err != nil {
		t.Errorf("the one before: %t, %v", is, err)
	}
	if is, err := isAt(second, path); !is || err != nil {
		t.Errorf("the one in its place: %t, %v", is, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if is, err := isAt(second, path); is || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: %t, %v", is, err)
	}
}
