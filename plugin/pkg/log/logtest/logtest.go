// Package logtest has tests see what is logged. Start at Capture.
package logtest

import (
	"bytes"
	"log"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventually"
)

// Output is what was logged. Any number of goroutines may write and read it.
type Output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Capture has what is logged from now on go to the Output that is returned, without date and time. When the test ends,
// all is as it was. All tests of a process log to one place: who captures the log cannot run in parallel to others.
func Capture(t testing.TB) *Output {
	o, was, flags := new(Output), log.Writer(), log.Flags()
	log.SetOutput(o)
	log.SetFlags(0)
	t.Cleanup(func() {
		log.SetOutput(was)
		log.SetFlags(flags)
	})
	return o
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// String is all that was logged so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Take is what was logged since the last call.
func (o *Output) Take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.b.Reset()
	return o.b.String()
}

// Has reports whether text was logged.
func (o *Output) Has(text string) bool { return strings.Contains(o.String(), text) }

// Await waits until text was logged, as eventually.Holds does.
func (o *Output) Await(t testing.TB, text string) {
	t.Helper()
	eventually.Holds(t, "log "+text, func() bool { return o.Has(text) })
}
