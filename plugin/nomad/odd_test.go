package nomad

import (
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// Of an address that is none, queries do not cause more than a few lines each second.
func TestOddAddressIsToldSeldom(t *testing.T) {
	out := logtest.Capture(t)
	_, url := newAPI(t)
	n := serving(t, url)
	began := time.Now()
	for range 100 {
		if _, _, err := n.catalog.ask(t.Context(), key{"default", "odd"}, 0); err != nil {
			t.Fatal(err)
		}
	}
	seconds := int(time.Since(began)/time.Second) + 2
	if told := strings.Count(out.String(), "error parsing IP address"); told == 0 || told > 10*seconds {
		t.Errorf("told %d times", told)
	}
}
