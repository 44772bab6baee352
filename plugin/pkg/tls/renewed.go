package tls

import (
	"crypto/tls"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/stamp"
)

// renewed is a client's certificate in two files, which are read again when they have changed: certificates are
// renewed while a server runs. As long as what is there cannot be used, as when the key has not been written
// yet, the one before stays in use.
type renewed struct {
	certPath, keyPath string

	mu     sync.Mutex
	cert   *tls.Certificate
	stamps [2]stamp.Stamp // of the files when they were read last
	broken bool           // what was read then was of no use
}

func stampsOf(certPath, keyPath string) [2]stamp.Stamp {
	return [2]stamp.Stamp{stamp.At(certPath), stamp.At(keyPath)}
}

// renew makes config, which presents the certificate in two files, present what they hold when it is asked for.
func renew(config *tls.Config, certPath, keyPath string, stamps [2]stamp.Stamp) {
	r := &renewed{certPath: certPath, keyPath: keyPath, cert: &config.Certificates[0], stamps: stamps}
	config.GetClientCertificate = r.present
}

// present is the GetClientCertificate of the configuration. A server that would not take the certificate gets
// none, as with one that does not change.
func (r *renewed) present(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert := r.current()
	if asked.SupportsCertificate(cert) != nil {
		return new(tls.Certificate), nil
	}
	return cert, nil
}

// current is the certificate, read again if that is due. A failure is told once, and tried again: who may read
// files can change without a trace in their stamps.
func (r *renewed) current() *tls.Certificate {
	r.mu.Lock()
	defer r.mu.Unlock()
	stamps := stampsOf(r.certPath, r.keyPath)
	changed := stamps != r.stamps
	if !changed && !r.broken {
		return r.cert
	}
	r.stamps = stamps
	var cert tls.Certificate
	err := stamp.NoPipe(r.certPath, r.keyPath)
	if err == nil {
		cert, err = tls.LoadX509KeyPair(r.certPath, r.keyPath)
	}
	if r.broken = err != nil; !r.broken {
		r.cert = &cert
	} else if changed {
		log.Warningf("Keeping the client's certificate in use, as that in %s cannot be read: %v", r.certPath, err)
	}
	return r.cert
}
