package stamp

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/stamp/stamptest"
)

func write(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// A stamp is equal as long as nobody touches the file, and not when it is written, replaced or gone.
func TestStamp(t *testing.T) {
	path, then := filepath.Join(t.TempDir(), "f"), time.Unix(1700000000, 5000)
	if At(path) != (Stamp{}) {
		t.Error("no file has a stamp")
	}
	write(t, path, "one", then)
	was := At(path)
	if was == (Stamp{}) || was != At(path) || !was.Changed().Equal(then) {
		t.Errorf("untouched: %v and %v, changed %v", was, At(path), was.Changed())
	}
	for what, change := range map[string]func(){
		"written later":    func() { write(t, path, "two", then.Add(time.Microsecond)) },
		"another length":   func() { write(t, path, "three", then) },
		"gone":             func() { os.Remove(path) },
		"the time of none": func() { write(t, path, "", time.Unix(0, 0)) },
	} {
		write(t, path, "one", then)
		was := At(path)
		if change(); At(path) == was {
			t.Errorf("%s: the same", what)
		}
	}
}

// Of paths, one that leads to a pipe is not to be opened; files, and what is not there, may be.
func TestNoPipe(t *testing.T) {
	dir := t.TempDir()
	file, pipe, none := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "none")
	write(t, file, "", time.Unix(0, 0))
	stamptest.Pipe(t, pipe)
	if IsPipe(file) || IsPipe(none) || !IsPipe(pipe) {
		t.Errorf("file %t, none %t, pipe %t", IsPipe(file), IsPipe(none), IsPipe(pipe))
	}
	if err := NoPipe(file, none); err != nil {
		t.Error(err)
	}
	if err, want := NoPipe(file, pipe), "open "+pipe+": a pipe is read at the start only"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
