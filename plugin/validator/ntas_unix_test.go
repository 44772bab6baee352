//go:build unix

package validator

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// One whose time is over ends while a line of the file cannot be read, or a pipe is in its place, and caches are told; one
// that is taken away before its time does not, as the file would bring it back.
func TestNegativesEndWhileMisspelt(t *testing.T) {
	now := time.Now()
	over, on := rrset.MustName("over."), rrset.MustName("on.")
	for _, piped := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "ntas")
		n := &ntas{path: file}
		for name, end := range map[string]time.Duration{over: time.Minute, on: time.Hour} {
			if err := n.set(name, now.Add(end), true); err != nil {
				t.Fatal(err)
			}
		}
		all := maps.Clone(n.get())
		all[over] = now.Add(-time.Second) // a minute later
		n.all.Store(&all)
		var told []string
		n.turned = func(names []string) { told = names }
		if piped {
			if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(file, []byte("over. tomorrow\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := n.load(now); err == nil {
			t.Fatal("nothing is wrong with the file")
		}
		if err := n.set(over, time.Time{}, false); err != nil || len(n.ended(now)) > 0 || len(told) != 1 || told[0] != over {
			t.Errorf("pipe %v: %v, told %q", piped, err, told)
		}
		if err := n.set(on, time.Time{}, false); err == nil || !n.holds(on, now) {
			t.Errorf("pipe %v: %v, it holds: %v", piped, err, n.holds(on, now))
		}
	}
}
