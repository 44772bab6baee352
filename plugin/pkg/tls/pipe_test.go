package tls_test

import (
	"path/filepath"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/stamp/stamptest"
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
	stamptest.Pipe(t, filepath.Join(dir, "key.pem"))
	stamptest.Prompt(t, func() {
		if got := shown(t, config, serves, serves.RootCAs); string(got) != string(serves.Certificates[0].Certificate[0]) {
			t.Error("the certificate is not shown any more")
		}
	})
}
