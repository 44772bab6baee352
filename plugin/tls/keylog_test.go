package tls

import (
	"os"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// TestKeyLogFull: clients get in although the disk has no room for their secrets, which is told once.
func TestKeyLogFull(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	out := logtest.Capture(t)
	k := &keyLog{path: full}
	if err := k.open(); err != nil {
		t.Fatal(err)
	}
	defer k.close()
	f, err := newFiles(pemFiles(t), clientAuth["nocert"])
	if err != nil {
		t.Fatal(err)
	}
	config := f.config()
	config.KeyLogWriter = k
	addr := listener(t, config)
	for range 2 {
		if _, err := greeted(t, addr, nil); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(out.String(), "[WARNING] plugin/tls: TLS Key Log is incomplete: write /dev/full: "); n != 1 {
		t.Errorf("told %d times: %s", n, out)
	}
}
