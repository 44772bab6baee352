package validator

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/stamp/stamptest"
)

// A pipe in the place of the file of negative trust anchors, to which nobody writes, holds up neither what else is due nor
// the end of the server; what was read holds.
func TestNegativesInPipe(t *testing.T) {
	now, file := time.Now(), filepath.Join(t.TempDir(), "ntas")
	if err := os.WriteFile(file, fmt.Appendf(nil, "a. %d\n", now.Add(time.Hour).Unix()), 0o600); err != nil {
		t.Fatal(err)
	}
	n := &ntas{path: file}
	if _, err := n.load(now); err != nil {
		t.Fatal(err)
	}
	stamptest.Pipe(t, file)
	stamptest.Prompt(t, func() {
		if _, err := n.load(now); err == nil || !n.holds(rrset.MustName("a."), now) {
			t.Errorf("%v", err)
		}
	})
	if changed, err := n.load(now); changed || err != nil {
		t.Errorf("told again: %v, %v", changed, err)
	}
}
