package eventually

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// What comes late is waited for, and no longer than until it is there.
func TestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		Holds(t, "ten seconds", func() bool { return time.Since(begin) >= 10*time.Second })
		if d := time.Since(begin); d > 10*time.Second+pause {
			t.Errorf("waited %v", d)
		}
	})
}

// failing is a test that notes what it ends with.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}
func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// What never comes ends the test, which says what it was.
func TestInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, begin := new(failing), time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			Holds(f, "the end of time", func() bool { return false })
		}()
		<-done
		if f.said != "waited in vain: the end of time" || time.Since(begin) < patience {
			t.Errorf("after %v: %q", time.Since(begin), f.said)
		}
	})
}
