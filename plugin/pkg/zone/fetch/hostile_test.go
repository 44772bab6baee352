package fetch

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire/wiretest"
)

// TestHostileTransfers reads messages as those of a transfer, whose names may all be long: a reverse zone is like that.
func TestHostileTransfers(t *testing.T) {
	wiretest.Compare(t, 40, func(t *testing.T, r *wiretest.Reply) {
		var rd reader
		if err := rd.reset(r.Message, 0); err != nil {
			t.Fatal(err)
		}
		rd.signature()
		for {
			if _, ok, err := rd.next(); err != nil || !ok {
				return
			}
		}
	})
}
