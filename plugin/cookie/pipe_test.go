//go:build unix

package cookie

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pipe in the place of the secrets, to which nobody writes, does not hold the end of the server.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(path, []byte("e5e973e5a6b2a43f48e7dc849e37bfcf\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := openSecrets(path)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(path)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	w := &watcher{file: f, every: time.Millisecond}
	w.start()
	time.Sleep(50 * time.Millisecond)
	done := make(chan struct{})
	go func() {
		w.stop()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for who writes to the pipe")
	}
	if f.err == "" {
		t.Error("nobody is told")
	}
}
