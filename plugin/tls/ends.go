package tls

import (
	"context"
	"crypto/x509"
	"maps"
	"slices"
	"time"
)

// endsInterval is how often it is looked at which certificates of authorities are in use. Tests change it.
var endsInterval = 10 * time.Second

// showEnds tells metrics of the certificates in use for all domains until ctx ends.
func (i *issuer) showEnds(ctx context.Context) {
	i.mu.Lock()
	domains := slices.Collect(maps.Keys(i.domains))
	i.mu.Unlock()
	for _, d := range domains {
		notAfter.Hold(d)
		defer notAfter.Release(d)
	}
	ticks := time.NewTicker(endsInterval)
	defer ticks.Stop()
	for {
		for _, d := range domains {
			if cert := i.inUse(d); cert != nil {
				showEnd(d, cert)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// inUse is the certificate that clients who ask for a domain are shown, nil if there is none yet.
func (i *issuer) inUse(domain string) (last *x509.Certificate) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range i.cache.AllMatchingCertificates(domain) {
		if c.Leaf != nil && slices.Contains(c.Names, domain) && (last == nil || c.Leaf.NotAfter.After(last.NotAfter)) {
			last = c.Leaf
		}
	}
	if stored := i.stored[domain]; last == nil && stored != nil {
		last = stored.Leaf
	}
	return last
}
