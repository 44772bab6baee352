package tls_test

import (
	gotls "crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/tls"
)

// shown is the certificate that a client with config shows to a server with serves that asks for one of certain CAs, nil if none.
func shown(t *testing.T, config, serves *gotls.Config, cas *x509.CertPool) []byte {
	t.Helper()
	server := serves.Clone()
	server.ClientCAs, server.ClientAuth = cas, gotls.RequestClientCert
	l, err := gotls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan []byte, 1)
	go func() {
		defer close(got)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		c := conn.(*gotls.Conn)
		if err := c.Handshake(); err != nil {
			return
		}
		if all := c.ConnectionState().PeerCertificates; len(all) > 0 {
			got <- all[0].Raw
		}
	}()
	config = config.Clone()
	config.RootCAs, config.ServerName = serves.RootCAs, "127.0.0.1"
	c, err := gotls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", l.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return <-got
}

// A client's certificate that is renewed is shown from the next connection on; one that cannot be used is not.
func TestRenewedClientCertificate(t *testing.T) {
	const old, renewed = 0, 1
	dirs := [2]string{files(t), files(t)}
	dir := t.TempDir()
	put := func(name string, n int) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dirs[n], name))
		if err != nil {
			t.Fatal(err)
		}
		next := filepath.Join(dir, "next")
		if err := os.WriteFile(next, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	var serves [2]*gotls.Config
	var certs [2]string
	for i, d := range dirs {
		c, err := tls.NewTLSConfig(filepath.Join(d, "cert.pem"), filepath.Join(d, "key.pem"), filepath.Join(d, "ca.pem"))
		if err != nil {
			t.Fatal(err)
		}
		serves[i], certs[i] = c, string(c.Certificates[0].Certificate[0])
	}
	other := httptest.NewTLSServer(nil)
	defer other.Close()
	others := x509.NewCertPool()
	others.AddCert(other.Certificate())
	put("ca.pem", old)
	for _, args := range [][]string{{path("cert.pem"), path("key.pem")}, {path("cert.pem"), path("key.pem"), path("ca.pem")}} {
		put("cert.pem", old)
		put("key.pem", old)
		config, err := tls.NewTLSConfigFromArgs(args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(t, config, serves[old], serves[old].RootCAs); string(got) != certs[old] {
			t.Error("the certificate is not shown")
		}
		if got := shown(t, config, serves[old], others); got != nil {
			t.Error("a certificate is shown that the server would not take")
		}
		put("cert.pem", renewed)
		for range 2 {
			if got := shown(t, config, serves[old], serves[old].RootCAs); string(got) != certs[old] {
				t.Error("without its key, the new certificate replaces the old one")
			}
		}
		put("key.pem", renewed)
		if got := shown(t, config, serves[renewed], serves[renewed].RootCAs); string(got) != certs[renewed] {
			t.Error("the renewed certificate is not shown")
		}
		if err := os.Remove(path("cert.pem")); err != nil {
			t.Fatal(err)
		}
		if got := shown(t, config, serves[renewed], serves[renewed].RootCAs); string(got) != certs[renewed] {
			t.Error("a certificate whose file is gone is not shown any more")
		}
	}
}
