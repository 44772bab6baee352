//go:build unix

package hosts

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestPipe: a pipe in the place of the file, to which nobody writes, does not hold the end of the server.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte("192.0.2.1 a.example.org\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &Hostsfile{path: path, reload: time.Millisecond}
	h.readHosts()
	os.Remove(path)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		h.watch(stop)
		close(done)
	}()
	time.Sleep(50 * time.Millisecond)
	close(stop)
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("it waits for who writes to the pipe")
	}
	if got := h.LookupStaticHostV4("a.example.org."); len(got) != 1 {
		t.Errorf("what was read is gone: %v", got)
	}
}
