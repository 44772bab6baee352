//go:build unix

package localroot

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pipe in the place of the file, to which nobody writes, is not waited for; the copy stays.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "root")
	w := newWorld(&File{Path: path})
	put(t, path, digested(t, rootText(1)), w.now)
	w.lookAgain()
	os.Remove(path)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	done := make(chan struct{})
	go func() {
		w.lookAgain()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for who writes to the pipe")
	}
	if !w.Has() {
		t.Error("the copy is gone")
	}
}
