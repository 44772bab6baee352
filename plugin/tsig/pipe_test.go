//go:build unix

package tsig

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/keyring"
)

// TestPipe: a pipe in the place of a file, to which nobody writes, holds up neither the keys of other files nor the end of
// the server.
func TestPipe(t *testing.T) {
	dir, ring := t.TempDir(), new(keyring.Ring)
	var files []*keyFile
	for _, name := range []string{"a", "b"} {
		f := &keyFile{path: filepath.Join(dir, name)}
		if err := os.WriteFile(f.path, []byte("key "+name+" { secret AAAA; };"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := f.read(); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	k := newKeeper(files, ring)
	os.Remove(files[0].path)
	if err := syscall.Mkfifo(files[0].path, 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(files[1].path, []byte("key c { secret BBBB; };"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		k.look()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for who writes to the pipe")
	}
	for name, want := range map[string]bool{"a.": true, "b.": false, "c.": true} {
		if _, got := ring.Key(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
