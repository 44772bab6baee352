package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// authority makes an authority of a test's own, as PEM, and a certificate of it for 127.0.0.1.
func authority(t *testing.T, name string) (ca []byte, cert *tls.Certificate) {
	t.Helper()
	sign := func(template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if by == nil {
			parent, by = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return c, key
	}
	began, ends := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	root, rootKey := sign(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: began, NotAfter: ends,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	leaf, key := sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "api"}, NotBefore: began, NotAfter: ends, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, root, rootKey)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}), &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}
}

// TestAuthorityIsRenewed has an API whose authority is another one one day, of which the file is told then, as the kubelet does: lists and
// watches go on.
func TestAuthorityIsRenewed(t *testing.T) {
	oldCA, oldCert := authority(t, "old")
	newCA, newCert := authority(t, "new")
	var shown atomic.Pointer[tls.Certificate]
	shown.Store(oldCert)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, jsonList)
	}))
	srv.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*shown.Load()}}, nil
	}}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail
	srv.StartTLS()
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(file+".new", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(oldCA)
	c, err := New(Config{Endpoint: srv.URL, CAFile: file})
	if err != nil {
		t.Fatal(err)
	}
	list := func() error {
		_, err := c.List(context.Background(), Services, Options{}, names(new([]string)))
		return err
	}
	if err := list(); err != nil {
		t.Fatal(err)
	}
	shown.Store(newCert)
	srv.CloseClientConnections()
	if err := list(); err == nil {
		t.Error("a certificate of an authority that nobody has named is trusted")
	}
	write([]byte("half of it"))
	if err := list(); err == nil {
		t.Error("a file of no use has the certificate trusted")
	}
	write(newCA)
	if err := list(); err != nil {
		t.Errorf("when the file has the new authority: %v", err)
	}
	w, err := c.Watch(context.Background(), Services, Options{})
	if err != nil {
		t.Errorf("a watch: %v", err)
	} else {
		w.Close()
	}
	if host := c.Host(); host != srv.Listener.Addr().String() {
		t.Errorf("the API is at %s then", host)
	}
}
