//go:build unix

package validator

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
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
	os.Remove(file)
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Skip(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := n.load(now)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !n.holds(rrset.MustName("a."), now) {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for who writes to the pipe")
	}
	if changed, err := n.load(now); changed || err != nil {
		t.Errorf("told again: %v, %v", changed, err)
	}
}
