package tls

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/stamp"
	pkgtls "github.com/coredns/coredns/plugin/pkg/tls"
)

// watchInterval is how often the files are looked at.
const watchInterval = 10 * time.Second

// files is a certificate, its key and perhaps the CAs of clients, in files.
type files struct {
	paths []string // certificate, key and perhaps CA
	auth  tls.ClientAuthType
	first *loaded // what the configuration was made of

	live    atomic.Pointer[loaded] // written by watch only, once that runs
	stamps  []stamp.Stamp          // of the files when they were read last; as live
	settles stamp.Settling         // as live
	broken  bool                   // what was read then is of no use; as live
	told    *loaded                // that is told not to be valid; as live

	started     bool // start was called; written by start, read by stop
	quit, ended chan struct{}
	once        sync.Once // closes quit
}

// loaded is what the files held when they were read. It never changes.
type loaded struct {
	cert   tls.Certificate
	cas    *x509.CertPool // nil for those of the system
	config *tls.Config    // with these CAs; that of the first ones is what the server's is made of
}

// newFiles reads the files, which are two or three.
func newFiles(paths []string, auth tls.ClientAuthType) (*files, error) {
	f := &files{paths: paths, auth: auth, quit: make(chan struct{}), ended: make(chan struct{})}
	f.stamps = f.look()
	l, err := f.load()
	if err != nil {
		return nil, err
	}
	f.first = l
	f.live.Store(l)
	return f, nil
}

// load reads the files.
func (f *files) load() (*loaded, error) {
	ca := ""
	if len(f.paths) > 2 {
		ca = f.paths[2]
	}
	c, err := pkgtls.NewTLSConfig(f.paths[0], f.paths[1], ca)
	if err != nil {
		return nil, err
	}
	l := &loaded{cert: c.Certificates[0], cas: c.RootCAs}
	c.Certificates = nil // else it would go before GetCertificate for clients without SNI
	c.GetCertificate = f.certificate
	c.ClientAuth = f.auth
	c.ClientCAs = l.cas
	l.config = c
	return l, nil
}

// config is a configuration that always presents the certificate that was read last, and asks clients for certificates of
// the CAs that were read last. It belongs to the caller.
func (f *files) config() *tls.Config {
	c := f.first.config.Clone()
	if len(f.paths) > 2 && f.auth != tls.NoClientCert {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.withNewCAs(c), nil }
	}
	return c
}

// certificate is the GetCertificate of the configuration.
func (f *files) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &f.live.Load().cert, nil
}

// withNewCAs is c, with all that its owner has set, and the CAs that were read last. It is nil as long as these are
// those of the start: c itself will do.
func (f *files) withNewCAs(c *tls.Config) *tls.Config {
	l := f.live.Load()
	if l.cas.Equal(f.first.cas) {
		return nil
	}
	c = c.Clone()
	c.ClientCAs, c.GetConfigForClient = l.cas, nil
	return c
}

// start watches the files until stop.
func (f *files) start(interval time.Duration) {
	f.started = true
	notAfter.Hold(f.paths[0])
	showEnd(f.paths[0], f.first.cert.Leaf)
	f.tellEnd(time.Now())
	go func() {
		defer close(f.ended)
		next := time.NewTimer(interval)
		defer next.Stop()
		for {
			select {
			case <-f.quit:
				return
			case <-next.C:
				again := f.unsettled(interval)
				if again == 0 {
					f.refresh()
				}
				f.tellEnd(time.Now())
				next.Reset(cmp.Or(again, interval))
			}
		}
	}()
}

// stop ends watching.
func (f *files) stop() {
	f.once.Do(func() {
		close(f.quit)
		if f.started {
			<-f.ended
			notAfter.Release(f.paths[0])
		}
	})
}

// unsettled is how long to wait before the files are read, which are looked at every so often: one that was changed just
// now may still be written, and the first certificates of a chain, or the first of the CAs, are a file, too.
func (f *files) unsettled(every time.Duration) time.Duration {
	var last time.Time // of those that are not what they were
	for i, s := range f.look() {
		if at := s.Changed(); s != f.stamps[i] && at.After(last) {
			last = at
		}
	}
	if last.IsZero() {
		return 0
	}
	return f.settles.Wait(last, time.Now(), every)
}

// refresh reads the files if one of them is not what it was. If that fails, as it does when the certificate has been
// written, but not its key yet, what was read before stays in use, and the files are tried again: who may read them can
// change without a trace in their stamps. The failure is told once.
func (f *files) refresh() {
	stamps := f.look()
	changed := !slices.Equal(stamps, f.stamps)
	if !changed && !f.broken {
		return
	}
	f.stamps = stamps
	var l *loaded
	err := stamp.NoPipe(f.paths...)
	if err == nil {
		l, err = f.load()
	}
	f.broken = err != nil
	switch {
	case err != nil && changed:
		reloads.WithLabelValues("failed").Inc()
		logger.Warningf("Keeping the certificate in use, as the new one cannot be read: %v", err)
		return
	case err != nil:
		return
	}
	f.live.Store(l)
	showEnd(f.paths[0], l.cert.Leaf)
	reloads.WithLabelValues("ok").Inc()
	logger.Infof("Certificate %s was read again: serial number %s, valid until %s", f.paths[0], serial(l.cert.Leaf), l.cert.Leaf.NotAfter.UTC().Format(time.RFC3339))
}

// tellEnd warns, once, if the certificate in use is not valid at a time: clients refuse it, of which a server learns little.
func (f *files) tellEnd(now time.Time) {
	l := f.live.Load()
	leaf := l.cert.Leaf
	if l == f.told || now.After(leaf.NotBefore) && now.Before(leaf.NotAfter) {
		return
	}
	f.told = l
	logger.Warningf("Certificate %s is valid from %s until %s only: clients will refuse it", f.paths[0],
		leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
}

func serial(c *x509.Certificate) string { return fmt.Sprintf("%X", c.SerialNumber) }

// look takes the stamps of the files.
func (f *files) look() (stamps []stamp.Stamp) {
	for _, p := range f.paths {
		stamps = append(stamps, stamp.At(p))
	}
	return stamps
}
