package clock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// The file moves the clock by a whole number of seconds, with a sign if need be. What is no number, or cannot be read, leaves it where it
// is, and is warned of once, as is that there is a file.
func TestFileMovesClock(t *testing.T) {
	out := logtest.Capture(t)
	path := filepath.Join(t.TempDir(), "clock")
	before := file
	file = func() string { return path }
	t.Cleanup(func() { file = before; offset.Store(0) })
	for _, tc := range []struct {
		text string
		want time.Duration
	}{{"3600\n", time.Hour}, {"-60", -time.Minute}, {"soon", -time.Minute}, {"1.5", -time.Minute}, {"", -time.Minute}, {"+7", 7 * time.Second}, {"0", 0}} {
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Offset(); got != tc.want {
			t.Errorf("%q: %v, want %v", tc.text, got, tc.want)
		}
		if d := time.Until(Now()) - tc.want; d.Abs() > time.Minute/2 {
			t.Errorf("%q: the time is %v ahead of what is wanted", tc.text, d)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 1 || !out.Has(Variable) {
		t.Errorf("%d warnings of the file:\n%s", n, out)
	}
	for range 2 {
		if !Moved() {
			t.Error("the clock is said to be the system's")
		}
	}
	if n := strings.Count(out.String(), "a clock that "+path+" moves"); n != 1 {
		t.Errorf("told %d times:\n%s", n, out)
	}
	path = ""
	offset.Store(int64(time.Hour))
	if d := time.Until(Now()); Moved() || Offset() != 0 || d.Abs() > time.Minute {
		t.Errorf("without a file the clock is moved: %v", d)
	}
}
