// Package eventually has tests wait for what happens in the background. Start at Holds.
package eventually

import (
	"testing"
	"time"
)

const (
	// patience is how long a test waits for what does not come. It is long, for the machine may be busy.
	patience = 30 * time.Second
	pause    = 5 * time.Millisecond
)

// Holds waits until ok reports true. It ends the test, which says what was waited for, if that takes 30 seconds. It is
// called by the goroutine that runs the test.
func Holds(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
