//go:build unix

package loadbalance

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pipe in the place of the weights, to which nobody writes, does not hold who looks at them; what was known stays.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(path, []byte("www.example.org\n192.0.2.1 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &weightFile{path: path, every: time.Hour}
	if _, err := f.load(); err != nil {
		t.Fatal(err)
	}
	known := f.current.Load()
	os.Remove(path)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := f.load()
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || f.current.Load() != known {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for who writes to the pipe")
	}
}
