package hosts

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/stamp"
)

// TestStillWritten: a file that was changed just now may still be written; the names that are not in it yet are not lost. A
// moment later it is read.
func TestStillWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	now := time.Now()
	write := func(text string, age time.Duration) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	write("192.0.2.1 a.example.org\n", time.Hour)
	h := &Hostsfile{path: path, reload: 5 * time.Second}
	h.readHosts()
	for _, step := range []struct {
		text string
		age  time.Duration
		wait bool
		a, b int // addresses of the names
	}{
		{"", 0, true, 1, 0}, {"192.0.2.2 b.example.org\n", 0, true, 1, 0},
		{"192.0.2.2 b.example.org\n192.0.2.1 a.example.org\n", 2 * time.Second, false, 1, 1},
		{"192.0.2.2 b.example.org\n", time.Minute, false, 0, 1},
	} {
		write(step.text, step.age)
		again := h.readSettled(now)
		a, b := h.LookupStaticHostV4("a.example.org."), h.LookupStaticHostV4("b.example.org.")
		if len(a) != step.a || len(b) != step.b || again > 0 != step.wait || again > stamp.Quiet {
			t.Errorf("%q of %v: a has %v, b %v, again after %v", step.text, step.age, a, b, again)
		}
	}
}
