//go:build unix

package stamp

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that takes the place of another one of the same length and time is another file.
func TestReplaced(t *testing.T) {
	path, then := filepath.Join(t.TempDir(), "f"), time.Unix(1700000000, 0)
	write(t, path, "one", then)
	write(t, path+".new", "two", then)
	was := At(path)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if is := At(path); is == was || is.size != was.size || is.mtime != was.mtime {
		t.Errorf("%v, then %v", was, is)
	}
}
