package tls_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	gotls "crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/tls"
)

// files writes ca.pem, cert.pem and key.pem, the certificate of a server at 127.0.0.1 that is its own CA, and
// broken.pem, and returns their folder.
func files(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "dns.example.org"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"ca.pem":     {Type: "CERTIFICATE", Bytes: cert},
		"cert.pem":   {Type: "CERTIFICATE", Bytes: cert},
		"key.pem":    {Type: "EC PRIVATE KEY", Bytes: secret},
		"broken.pem": {Type: "CERTIFICATE", Bytes: []byte("broken")},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestNewTLSConfigFromArgs(t *testing.T) {
	dir := files(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, tc := range []struct {
		name      string
		args      []string
		certs     int
		systemCAs bool
	}{
		{"nothing", nil, 0, true},
		{"CA", []string{path("ca.pem")}, 0, false},
		{"certificate", []string{path("cert.pem"), path("key.pem")}, 1, true},
		{"certificate and CA", []string{path("cert.pem"), path("key.pem"), path("ca.pem")}, 1, false},
	} {
		c, err := tls.NewTLSConfigFromArgs(tc.args...)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if len(c.Certificates) != tc.certs || (c.RootCAs == nil) != tc.systemCAs || c.MinVersion != gotls.VersionTLS12 {
			t.Errorf("%s: got %d certificates, system CAs %t, version %x", tc.name, len(c.Certificates), c.RootCAs == nil, c.MinVersion)
		}
	}
}

func TestNewTLSConfigFromArgsErrors(t *testing.T) {
	dir := files(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"a", "b", "c", "d"}, "maximum of three arguments allowed for TLS config, found 4"},
		{[]string{"nosuchfile"}, "error reading nosuchfile: open nosuchfile: "},
		{[]string{path("broken.pem")}, "could not read root certs"},
		{[]string{path("key.pem")}, "could not read root certs"},
		{[]string{"nosuchfile", "b"}, "could not load TLS cert: open nosuchfile: "},
		{[]string{path("cert.pem"), "nosuchfile"}, "could not load TLS cert: open nosuchfile: "},
		{[]string{path("key.pem"), path("key.pem")}, "could not load TLS cert: tls: "},
		{[]string{path("cert.pem"), path("key.pem"), "nosuchfile"}, "error reading nosuchfile: open nosuchfile: "},
	} {
		c, err := tls.NewTLSConfigFromArgs(tc.args...)
		if c != nil || err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%q: got %v, %v, want %s", tc.args, c, err, tc.want)
		}
	}
}

// TestHTTPSTransport makes both ends from files and lets them talk.
func TestHTTPSTransport(t *testing.T) {
	dir := files(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	serverConfig, err := tls.NewTLSConfig(path("cert.pem"), path("key.pem"), path("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	serverConfig.ClientCAs = serverConfig.RootCAs
	serverConfig.ClientAuth = gotls.VerifyClientCertIfGiven

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.TLS = serverConfig
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()

	get := func(config *gotls.Config) (string, error) {
		transport := tls.NewHTTPSTransport(config)
		transport.Proxy = nil
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	}

	trusting, err := tls.NewTLSClientConfig(path("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := get(trusting); got != "HTTP/2.0" || err != nil {
		t.Errorf("got %q, %v, want HTTP/2.0", got, err)
	}
	doubting, err := tls.NewTLSClientConfig("")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := get(doubting); err == nil {
		t.Errorf("a certificate of an unknown CA was trusted: got %q", got)
	}
}
