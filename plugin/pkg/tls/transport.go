package tls

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// NewHTTPSTransport returns a transport for HTTP/1.1 and HTTP/2 whose TLS connections follow cc. cc belongs to the
// transport from then on; nil stands for Go's defaults. Proxies are taken from the environment, as
// http.ProxyFromEnvironment does.
func NewHTTPSTransport(cc *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSClientConfig:     cc,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
	}
}
