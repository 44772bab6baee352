package validator

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// A file of negative trust anchors that is being written is not read before it has settled: those that are still to come
// would end, and one that is set meanwhile would be written over them.
func TestNegativesBeingWritten(t *testing.T) {
	now, file := time.Now(), filepath.Join(t.TempDir(), "ntas")
	v, _ := lab(t, "nta_file "+file)
	k, n := v.keeper, &v.negatives
	write := func(ago time.Duration, names ...string) {
		t.Helper()
		text := ""
		for _, name := range names {
			text += fmt.Sprintf("%s %d\n", name, now.Add(2*time.Hour).Unix())
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, now, now.Add(-ago)); err != nil {
			t.Fatal(err)
		}
	}
	hold := func(when string, names ...string) {
		t.Helper()
		for _, name := range names {
			if !n.holds(rrset.MustName(name), now) {
				t.Errorf("%s: %s does not hold", when, name)
			}
		}
	}
	write(time.Hour, "a.", "b.")
	if _, err := n.load(now); err != nil {
		t.Fatal(err)
	}
	hold("at the start", "a.", "b.")
	write(100*time.Millisecond, "b.")
	if again := k.look(t.Context(), now); again != 900*time.Millisecond {
		t.Errorf("it is looked at again after %v", again)
	}
	hold("being written", "a.", "b.")
	write(2*time.Second, "b.", "c.", "a.")
	if again := k.look(t.Context(), now); again != 0 {
		t.Errorf("it is looked at again after %v", again)
	}
	hold("written", "a.", "b.", "c.")

	write(0, "b.", "c.", "a.")
	if wait := n.unsettled(now); wait != time.Second {
		t.Errorf("one that is set waits for %v", wait)
	}
	if _, err := n.load(now); err != nil { // after that
		t.Fatal(err)
	}
	now = now.Add(time.Hour / 2)
	write(0, "b.")
	if again := k.look(t.Context(), now); again != time.Second {
		t.Errorf("written later: it is looked at again after %v", again)
	}
	hold("written later", "a.", "b.", "c.")

	defer func(before func(*ntas)) { settle = before }(settle)
	settle = func(*ntas) { write(0, "b.", "c.", "a.", "d.") }
	write(0, "b.")
	if err := n.set(rrset.MustName("e."), now.Add(time.Hour), true); err != nil {
		t.Error(err)
	}
	hold("set", "a.", "b.", "c.", "d.", "e.")

	// What another server block has written there is not.
	settle = func(*ntas) {}
	other := &ntas{path: file}
	if _, err := other.load(now); err != nil {
		t.Fatal(err)
	}
	if err := n.set(rrset.MustName("f."), now.Add(time.Hour), true); err != nil {
		t.Error(err)
	}
	if wait := other.unsettled(time.Now()); wait != 0 {
		t.Errorf("after another one has written it: it is read after %v", wait)
	}
	if changed, err := other.load(now); !changed || err != nil {
		t.Errorf("what another one has written: read is %v (%v)", changed, err)
	}
}
