package tls

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/stamp/stamptest"
)

// TestPipe: a pipe in the place of a certificate, its key or the CAs, to which nobody writes, does not hold the end of the
// server; what was read stays in use.
func TestPipe(t *testing.T) {
	out := logtest.Capture(t)
	for i := range 3 {
		f, err := newFiles(pemFiles(t), tls.RequireAndVerifyClientCert)
		if err != nil {
			t.Fatal(err)
		}
		was := f.live.Load()
		stamptest.Pipe(t, f.paths[i])
		f.start(time.Millisecond)
		time.Sleep(50 * time.Millisecond)
		stamptest.Prompt(t, func() {
			f.stop()
		})
		if f.live.Load() != was {
			t.Error("the certificate is another one")
		}
	}
	if n := strings.Count(out.String(), "a pipe is read at the start only"); n > 3 {
		t.Errorf("told %d times", n)
	}
}
