//go:build unix

package sign

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
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
		os.Remove(path)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		done := make(chan struct{})
		go func() {
			s.follow(t.Context(), soon())
			s.renew(t.Context(), soon(), "it is time")
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("it waits for who writes to the pipe")
		}
		if signedNow(t, s) != before {
			t.Error("the signed file is another one")
		}
	}
}
