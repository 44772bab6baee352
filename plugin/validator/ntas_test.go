package validator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// A file that somebody changes is read anew: what it has more holds, what it has no more does not, and what was set
// by the configuration stays. One that cannot be read leaves all as it was. Setting one more loses nothing that was
// written there.
func TestNegativesAreReadAnew(t *testing.T) {
	now, file := time.Now(), filepath.Join(t.TempDir(), "ntas")
	end := now.Add(time.Hour).Unix()
	n, at := &ntas{path: file}, now
	write := func(text string) {
		t.Helper()
		at = at.Add(time.Second)
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "END", fmt.Sprint(end))), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	holding := func() (all string) {
		for _, name := range []string{"conf.", "a.", "b.", "c."} {
			if n.holds(rrset.MustName(name), now) {
				all += name
			}
		}
		return all
	}
	if err := n.set(rrset.MustName("conf."), now.Add(time.Hour), false); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, want   string
		changed, bad bool
	}{
		{"a. END\nb. END\n", "conf.a.b.", true, false}, {"", "conf.a.b.", false, false}, {"b. END\nc. END\n", "conf.b.c.", true, false},
		{"b. END\nc.\n", "conf.b.c.", false, true}, {"c. 1\n", "conf.", true, false}, {"a. END", "conf.a.", true, false},
	} {
		if c.text != "" {
			write(c.text)
		}
		if changed, err := n.load(now); changed != c.changed || (err != nil) != c.bad || holding() != c.want {
			t.Errorf("%q: %v %v, %s hold, want %s", c.text, changed, err, holding(), c.want)
		}
	}
	write("b. END\n")
	if err := n.set(rrset.MustName("c."), now.Add(time.Hour), true); err != nil || holding() != "conf.b.c." {
		t.Errorf("%v, %s hold", err, holding())
	}
	if b, err := os.ReadFile(file); err != nil || strings.Count(string(b), "\n") != 2 {
		t.Errorf("the file is %q %v", b, err)
	}
	if changed, err := n.load(now); changed || err != nil {
		t.Errorf("what was written here is read anew: %v", err)
	}
}

// A file that cannot be read for a while is read after that, and is not written over meanwhile.
func TestNegativesUnreadable(t *testing.T) {
	now := time.Now()
	file := filepath.Join(t.TempDir(), "ntas")
	n := &ntas{path: file}
	if _, err := n.load(now); err != nil {
		t.Fatal(err)
	}
	// A folder can be looked at and opened, and reading it fails.
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if changed, err := n.load(now); changed || err == nil {
			t.Errorf("read: %v, %v", changed, err)
		}
		if err := n.set(rrset.MustName("c."), now.Add(time.Hour), true); err == nil || !strings.Contains(err.Error(), "read "+file) {
			t.Errorf("set: %v", err)
		}
	}
}

// A file with a line that cannot be read is told of once, and not written over until somebody has mended it.
func TestNegativesMisspelt(t *testing.T) {
	now := time.Now()
	file := filepath.Join(t.TempDir(), "ntas")
	n := &ntas{path: file}
	set := func() error { return n.set(rrset.MustName("c."), now.Add(time.Hour), true) }
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	line := fmt.Sprintf("a. %d\n", now.Add(time.Hour).Unix())
	write(line + "b. tomorrow\n")
	if _, err := n.load(now); err == nil {
		t.Fatal("tomorrow is a time")
	}
	for range 2 {
		if changed, err := n.load(now); changed || err != nil {
			t.Errorf("told once more: %v", err)
		}
		if err := set(); err == nil || !strings.Contains(err.Error(), file+":2: invalid time") {
			t.Errorf("set: %v", err)
		}
	}
	if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "tomorrow") || n.holds(rrset.MustName("c."), now) {
		t.Errorf("the file is %q, %v; c. holds: %v", b, err, n.holds(rrset.MustName("c."), now))
	}
	write(line)
	if err := set(); err != nil || !n.holds(rrset.MustName("a."), now) || !n.holds(rrset.MustName("c."), now) {
		t.Errorf("after it was mended: %v", err)
	}
}
