package iterate

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// That priming failed is told once a minute, however often the root's servers are asked for in between, and that does not
// put off when it is tried again.
func TestPrimingFailedIsToldOnceAMinute(t *testing.T) {
	told := 0
	s := &Shared{Unready: func(string) { told++ }}
	at := func(seconds int) store.Time { return 1000*store.Second + store.Time(seconds)*store.Second }
	for _, c := range []struct{ at, told int }{{0, 1}, {0, 1}, {30, 1}, {59, 1}, {60, 2}, {61, 2}, {-100, 3}} { // the last one by a clock that was set back
		if s.failed(at(c.at), "no reply"); told != c.told {
			t.Errorf("at %d it was told %d times, not %d", c.at, told, c.told)
		}
		if s.due(at(c.at)) {
			t.Errorf("at %d it is tried again", c.at)
		}
	}
	if !s.due(at(-40)) {
		t.Error("it is not tried again after a minute")
	}
}
