//go:build unix

package tls_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/tls"
)

// A pipe in the place of a client's certificate, to which nobody writes, does not hold connections; what was read is shown.
func TestPipeForClientCertificate(t *testing.T) {
	dir := files(t)
	serves, err := tls.NewTLSConfig(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := tls.NewTLSConfigFromArgs(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(dir, "key.pem"))
	if err := syscall.Mkfifo(filepath.Join(dir, "key.pem"), 0o600); err != nil {
		t.Skip(err)
	}
	done := make(chan []byte, 1)
	go func() { done <- shown(t, config, serves, serves.RootCAs) }()
	select {
	case got := <-done:
		if string(got) != string(serves.Certificates[0].Certificate[0]) {
			t.Error("the certificate is not shown any more")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for who writes to the pipe")
	}
}
