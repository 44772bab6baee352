// Package stamptest puts named pipes in the place of files that are looked at again, for tests of who looks: nobody
// writes to them, so who opens one waits for ever. Start at Pipe.
package stamptest

import (
	"os"
	"testing"
	"time"
)

// Pipe puts a pipe in the place of the file at path, if there is one. It skips the test where there are no pipes.
func Pipe(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := makePipe(path); err != nil {
		t.Skipf("no named pipes here, run this on another system: %v", err)
	}
}

// Prompt calls f, and ends the test if f waits for who writes to a pipe.
func Prompt(t testing.TB, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for who writes to the pipe")
	}
}
