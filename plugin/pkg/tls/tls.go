// Package tls makes TLS configurations from files, as the options of several plugins name them. All of them ask
// for at least TLS 1.2.
//
// Files are read once, when the configuration is made; only the certificate of a client, in renewed.go, is read
// again when it was renewed. A configuration may serve any number of connections, but must not be changed while
// it does. Start at NewTLSConfigFromArgs.
package tls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// minVersion is the oldest version that is spoken (RFC 9325 §3.1.1).
const minVersion = tls.VersionTLS12

// NewTLSConfigFromArgs returns the configuration for the arguments of an option tls:
//
//	(none)       trust the system's CAs
//	CA           trust this CA only
//	CERT KEY     present this certificate, trust the system's CAs
//	CERT KEY CA  present this certificate, trust this CA only
//
// Each argument is the path of a PEM file. As a client's, the configuration presents the certificate that CERT
// and KEY hold when a connection is made.
func NewTLSConfigFromArgs(args ...string) (*tls.Config, error) {
	switch len(args) {
	case 0:
		return NewTLSClientConfig("")
	case 1:
		return NewTLSClientConfig(args[0])
	case 2:
		return newRenewedConfig(args[0], args[1], "")
	case 3:
		return newRenewedConfig(args[0], args[1], args[2])
	}
	return nil, fmt.Errorf("maximum of three arguments allowed for TLS config, found %d", len(args))
}

// newRenewedConfig is NewTLSConfig for a client whose certificate may be renewed.
func newRenewedConfig(certPath, keyPath, caPath string) (*tls.Config, error) {
	stamps := stampsOf(certPath, keyPath) // before they are read: they may change at any time
	config, err := NewTLSConfig(certPath, keyPath, caPath)
	if err != nil {
		return nil, err
	}
	renew(config, certPath, keyPath, stamps)
	return config, nil
}

// NewTLSConfig returns a configuration that presents the certificate in the file certPath, with the key in keyPath,
// and trusts the CAs in caPath, the system's if that is empty.
func NewTLSConfig(certPath, keyPath, caPath string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(certPath, keyPath)
	if err != nil {
		return nil, fmt.Errorf("could not load TLS cert: %w%s", err, whichFile(certPath, keyPath, err))
	}
	config, err := NewTLSClientConfig(caPath)
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{cert}
	return config, nil
}

// whichFile tells which of two files is to blame for err, and what it should hold; err names a file that cannot be
// read.
func whichFile(certPath, keyPath string, err error) string {
	if errors.As(err, new(*fs.PathError)) {
		return ""
	}
	cert, _ := os.ReadFile(certPath)
	key, _ := os.ReadFile(keyPath)
	hasCert, hasKey := bytes.Contains(cert, []byte("-----BEGIN CERTIFICATE-----")), bytes.Contains(key, []byte("PRIVATE KEY-----"))
	switch {
	case !hasCert && !hasKey && bytes.Contains(key, []byte("-----BEGIN CERTIFICATE-----")):
		return fmt.Sprintf(": the certificate's file stands before the key's: did you mean '%s %s'?", keyPath, certPath)
	case !hasCert:
		return fmt.Sprintf(": %s has no certificate in PEM form", certPath)
	case !hasKey:
		return fmt.Sprintf(": %s has no private key in PEM form", keyPath)
	case bytes.Contains(key, []byte("BEGIN ENCRYPTED")), bytes.Contains(key, []byte(",ENCRYPTED")): // PKCS #8, RFC 1421
		return fmt.Sprintf(": the key in %s is encrypted, and there is nobody to ask for the passphrase", keyPath)
	}
	for block, rest := pem.Decode(cert); block != nil; block, rest = pem.Decode(rest) {
		if _, err := tls.X509KeyPair(rest, key); err == nil {
			return fmt.Sprintf(": the certificate of the key in %s has to be the first one in %s", keyPath, certPath)
		}
	}
	return fmt.Sprintf(": the certificate in %s and the key in %s: are they of one pair?", certPath, keyPath)
}

// NewTLSClientConfig returns a configuration for a client without a certificate that trusts the CAs in the file
// caPath, the system's if that is empty.
func NewTLSClientConfig(caPath string) (*tls.Config, error) {
	roots, err := loadRoots(caPath)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: minVersion, RootCAs: roots}, nil
}

// loadRoots reads the CAs in the file caPath. Nil stands for those of the system.
func loadRoots(caPath string) (*x509.CertPool, error) {
	if caPath == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(caPath)
	if err != nil {
		return nil, fmt.Errorf("error reading %s: %w", caPath, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("could not read root certs: %s has no certificate in PEM form", caPath)
	}
	return roots, nil
}
