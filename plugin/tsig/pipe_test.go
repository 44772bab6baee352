package tsig

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/stamp/stamptest"
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
	stamptest.Pipe(t, files[0].path)
	if err := os.WriteFile(files[1].path, []byte("key c { secret BBBB; };"), 0o600); err != nil {
		t.Fatal(err)
	}
	stamptest.Prompt(t, func() {
		k.look()
	})
	for name, want := range map[string]bool{"a.": true, "b.": false, "c.": true} {
		if _, got := ring.Key(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
