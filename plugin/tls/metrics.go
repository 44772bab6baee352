package tls

import (
	"crypto/x509"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/held"

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
	notAfter = held.Of(promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "certificate_not_after_timestamp_seconds",
		Help: "End of the validity of the certificate in use, in seconds since 1970.",
	}, []string{"certificate"}))
)

// showEnd makes cert the certificate that is in use of a file, or for a domain.
func showEnd(of string, cert *x509.Certificate) {
	notAfter.WithLabelValues(of).Set(float64(cert.NotAfter.Unix()))
}
