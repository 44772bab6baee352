package tls

import (
	"crypto/x509"
	"sync"

	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func init() { // of every label value, so that who watches them sees the first step, too
	reloads.WithLabelValues("ok")
	reloads.WithLabelValues("failed")
}

var (
	reloads = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "certificate_reloads_total",
		Help: "Counter of certificates that were read again because their files changed.",
	}, []string{"result"})
	notAfter = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "certificate_not_after_timestamp_seconds",
		Help: "End of the validity of the certificate in use, in seconds since 1970.",
	}, []string{"certificate"})
)

// inUse is the certificates that notAfter shows: those of files that somebody watches. In a reload two configurations
// do for a moment, and server blocks may have the same files.
var inUse = struct {
	sync.Mutex
	watchers map[string]int // by the certificate's file
}{watchers: map[string]int{}}

// show begins to show a certificate.
func show(path string, cert *x509.Certificate) {
	inUse.Lock()
	defer inUse.Unlock()
	inUse.watchers[path]++
	setNotAfter(path, cert)
}

// setNotAfter makes cert what is shown of a file from now on.
func setNotAfter(path string, cert *x509.Certificate) {
	notAfter.WithLabelValues(path).Set(float64(cert.NotAfter.Unix()))
}

// hide ends what show has begun: who watches for certificates that run out need not hear of one that nobody uses.
func hide(path string) {
	inUse.Lock()
	defer inUse.Unlock()
	if inUse.watchers[path]--; inUse.watchers[path] <= 0 {
		delete(inUse.watchers, path)
		notAfter.DeleteLabelValues(path)
	}
}
