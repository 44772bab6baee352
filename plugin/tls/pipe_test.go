//go:build unix

package tls

import (
	"crypto/tls"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPipe: a pipe in the place of a certificate, its key or the CAs, to which nobody writes, does not hold the end of the
// server; what was read stays in use.
func TestPipe(t *testing.T) {
	out := captureLog(t)
	for i := range 3 {
		f, err := newFiles(pemFiles(t), tls.RequireAndVerifyClientCert)
		if err != nil {
			t.Fatal(err)
		}
		was := f.live.Load()
		os.Remove(f.paths[i])
		if err := syscall.Mkfifo(f.paths[i], 0o600); err != nil {
			t.Skip(err)
		}
		f.start(time.Millisecond)
		time.Sleep(50 * time.Millisecond)
		done := make(chan struct{})
		go func() {
			f.stop()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("it waits for who writes to the pipe")
		}
		if f.live.Load() != was {
			t.Error("the certificate is another one")
		}
	}
	if n := strings.Count(out.String(), "a pipe is read at the start only"); n > 3 {
		t.Errorf("told %d times", n)
	}
}
