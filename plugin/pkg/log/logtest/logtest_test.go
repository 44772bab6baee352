package logtest_test

import (
	"log"
	"strings"
	"sync"
	"testing"

	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// All that is logged while a test runs is seen, and nothing from before or after.
func TestCapture(t *testing.T) {
	around := logtest.Capture(t)
	t.Run("inside", func(t *testing.T) {
		out := logtest.Capture(t)
		var done sync.WaitGroup
		for range 10 {
			done.Go(func() { log.Print("one") })
		}
		done.Wait()
		if want := 10 * len("one\n"); len(out.String()) != want {
			t.Errorf("%q", out)
		}
		go clog.Infof("number %d", 2)
		out.Await(t, "[INFO] number 2\n")
		if text := out.Take(); !strings.Contains(text, "one\n[INFO]") || out.Take() != "" || out.Has("one") {
			t.Errorf("taken: %q", text)
		}
	})
	log.Print("after")
	if got := around.String(); got != "after\n" {
		t.Errorf("outside: %q", got)
	}
}
