package tls

import (
	"os"
	"path/filepath"
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

// TestKeyLogClosed: what a connection writes that outlives its server is left out, and nothing is told of it.
func TestKeyLogClosed(t *testing.T) {
	out := logtest.Capture(t)
	k := &keyLog{path: filepath.Join(t.TempDir(), "keys")}
	if err := k.open(); err != nil {
		t.Fatal(err)
	}
	k.Write([]byte("one\n"))
	for range 2 {
		if err := k.close(); err != nil {
			t.Error(err)
		}
	}
	if n, err := k.Write([]byte("two\n")); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got, err := os.ReadFile(k.path); string(got) != "one\n" {
		t.Errorf("%q, %v", got, err)
	}
	if strings.Contains(out.String(), "incomplete") {
		t.Error(out)
	}
}
