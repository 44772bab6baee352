// Command certs makes a certificate to try encrypted transports with: for localhost, the loopback addresses and dns.example.org,
// signed by an authority of its own.
//
//	go run ./examples/certs examples
//
// It writes cert.pem, key.pem and ca.pem into the folder given, unless they are there and valid for another week. The authority's
// key is thrown away.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

func main() {
	valid := flag.Duration("valid", 90*24*time.Hour, "how long the certificate is valid")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: certs [-valid DURATION] FOLDER")
		os.Exit(2)
	}
	dir := flag.Arg(0)
	if good(dir) {
		return
	}
	if err := write(dir, *valid); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("made %s, %s and %s\n", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem"))
}

// good reports whether the folder has a certificate that will do.
func good(dir string) bool {
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(dir, "ca.pem"))
	return err == nil && time.Until(cert.Leaf.NotAfter) > 7*24*time.Hour
}

// write makes the three files.
func write(dir string, valid time.Duration) error {
	now := time.Now().Add(-time.Hour)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of examples"},
		NotBefore: now, NotAfter: now.Add(valid + 24*time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "dns.example.org"},
		NotBefore: now, NotAfter: now.Add(valid + time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost", "dns.example.org"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the authority's key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	caCert, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return fmt.Errorf("signing the authority: %w", err)
	}
	cert, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return fmt.Errorf("signing the certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding the key: %w", err)
	}
	for _, f := range []struct {
		name, kind string
		content    []byte
		mode       os.FileMode
	}{
		{"ca.pem", "CERTIFICATE", caCert, 0o644},
		{"cert.pem", "CERTIFICATE", cert, 0o644},
		{"key.pem", "PRIVATE KEY", private, 0o600},
	} {
		text := pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.content})
		if err := os.WriteFile(filepath.Join(dir, f.name), text, f.mode); err != nil {
			return err
		}
	}
	return nil
}
