//go:build unix

package dynupdate

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A pipe is no database: nobody may ever write to it, and the start would wait for that without a word.
func TestDatabaseIsNoPipe(t *testing.T) {
	dir := t.TempDir()
	newBed(t, dir, "").stop() // which makes the seed
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "is not a regular file", dir: "is not a regular file"} {
		refused := make(chan error, 1)
		go func() {
			_, err := tryBed(t, dir, "database "+path)
			refused <- err
		}()
		select {
		case err := <-refused:
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", path, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s is waited for", path)
		}
	}
}
