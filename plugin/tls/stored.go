package tls

import (
	"context"
	"crypto/tls"

	"github.com/caddyserver/certmagic"
)

// stored is the certificate of a domain that the storage of an account holds, nil if there is none that can be used.
func stored(a account, domain string) *tls.Certificate {
	storage := &certmagic.FileStorage{Path: a.storage}
	authority := (&certmagic.ACMEIssuer{CA: a.ca}).IssuerKey()
	cert, err := storage.Load(context.Background(), certmagic.StorageKeys.SiteCert(authority, domain))
	if err != nil {
		return nil
	}
	key, err := storage.Load(context.Background(), certmagic.StorageKeys.SitePrivateKey(authority, domain))
	if err != nil {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil // certmagic tells of it when it reads the same files
	}
	return &pair
}
