package sign

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/stamp/stamptest"
)

// A pipe in the place of the zone file, or of one that it includes, to which nobody writes, does not hold the end of the
// server; the signed file stays as it is.
func TestPipe(t *testing.T) {
	for _, name := range []string{"", "hosts"} {
		s := signer(t)
		hosts := filepath.Join(filepath.Dir(s.dbfile), "hosts")
		put(t, hosts, "one A 192.0.2.1\n")
		put(t, s.dbfile, zoneText+"$INCLUDE hosts\n")
		s.refresh(t.Context(), time.Now())
		before, path := signedNow(t, s), s.dbfile
		if name != "" {
			path = hosts
		}
		stamptest.Pipe(t, path)
		stamptest.Prompt(t, func() {
			s.follow(t.Context(), soon())
			s.renew(t.Context(), soon(), "it is time")
		})
		if signedNow(t, s) != before {
			t.Error("the signed file is another one")
		}
	}
}
