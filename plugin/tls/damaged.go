package tls

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"os"
	"time"

	"github.com/caddyserver/certmagic"
)

// A certificate lies in its storage as three files. If they do not fit together, as after a crash between the writing of the
// first and the last, or if one of them is damaged, certmagic tells so and leaves the domain alone for ever. So such files
// are put aside, and the certificate is obtained anew.

// damagedPause is how long files have to be damaged: another process may be writing them. Tests change it.
var damagedPause = 10 * time.Second

// mend looks after the files of those domains that cannot be used.
func mend(ctx context.Context, cfg *certmagic.Config, a account, domains []string) {
	var all []string
	for _, d := range domains {
		if damage(a, d) != nil {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(damagedPause):
	}
	for _, d := range all {
		err := damage(a, d)
		if err == nil {
			continue
		}
		to, moveErr := putAside(a, d)
		if moveErr != nil {
			logger.Errorf("The certificate of %s in the storage cannot be used: %v; nor can it be put aside: %v", d, err, moveErr)
			continue
		}
		logger.Warningf("The certificate of %s in the storage cannot be used, another one is obtained: %v; the files are in %s", d, err, to)
	}
	_ = cfg.ManageAsync(ctx, all) // it logs what fails
}

// damage is why the files of a domain are of no use, nil if they are of some. One that is not there, certmagic obtains by itself;
// one that cannot be read may be there again soon, or is for somebody to look after.
func damage(a account, domain string) error {
	storage, authority := &certmagic.FileStorage{Path: a.storage}, authorityOf(a)
	var files [3][]byte
	for n, key := range []string{
		certmagic.StorageKeys.SiteCert(authority, domain), certmagic.StorageKeys.SitePrivateKey(authority, domain), certmagic.StorageKeys.SiteMeta(authority, domain),
	} {
		var err error
		if files[n], err = storage.Load(context.Background(), key); err != nil {
			return nil
		}
	}
	if _, err := tls.X509KeyPair(files[0], files[1]); err != nil {
		return err
	}
	return json.Unmarshal(files[2], new(certmagic.CertificateResource))
}

// putAside moves the files of a domain to another folder, in which nothing of an earlier time stays.
func putAside(a account, domain string) (to string, err error) {
	from := (&certmagic.FileStorage{Path: a.storage}).Filename(certmagic.StorageKeys.CertsSitePrefix(authorityOf(a), domain))
	to = from + ".damaged"
	if err := os.RemoveAll(to); err != nil {
		return to, err
	}
	return to, os.Rename(from, to)
}

// authorityOf is what a storage calls the authority of an account.
func authorityOf(a account) string { return (&certmagic.ACMEIssuer{CA: a.ca}).IssuerKey() }
