package localroot

import (
	"path/filepath"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/stamp/stamptest"
)

// A pipe in the place of the file, to which nobody writes, is not waited for; the copy stays.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "root")
	w := newWorld(&File{Path: path})
	put(t, path, digested(t, rootText(1)), w.now)
	w.lookAgain()
	stamptest.Pipe(t, path)
	stamptest.Prompt(t, func() {
		w.lookAgain()
	})
	if !w.Has() {
		t.Error("the copy is gone")
	}
}
