package proxy_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// What programs are compiled against.
var _ = []any{
	func() string { return proxy.ErrTransportStopped },
	[]error{proxy.ErrCachedClosed, proxy.ErrInvalidRequest, proxy.ErrNoForward, proxy.ErrNoHealthy},
	proxy.Options{ForceTCP: true, PreferUDP: true, HCRecursionDesired: true, HCDomain: "."},
	func(proxyName, protocol string, recursionDesired bool, domain string) proxy.HealthChecker {
		return proxy.NewHealthChecker(proxyName, protocol, recursionDesired, domain)
	},
	func(p *proxy.Proxy) (_ interface {
		Addr() string
		Connect(context.Context, request.Request, proxy.Options) (*dns.Msg, net.Addr, string, error)
		DoHHost() string
		Down(uint32) bool
		Fails() uint32
		GetHealthchecker() proxy.HealthChecker
		GetTransport() *proxy.Transport
		Healthcheck()
		SetDOHHost(string)
		SetDOHRequestOptions(string)
		SetExpire(time.Duration)
		SetHTTPClient(*http.Client)
		SetLocalAddress(net.IP)
		SetMaxAge(time.Duration)
		SetMaxIdleConns(int)
		SetReadTimeout(time.Duration)
		SetTLSConfig(*tls.Config)
		Start(time.Duration)
		Stop()
	}) {
		return p
	},
	func(t *proxy.Transport) (_ interface {
		GetTLSConfig() *tls.Config
		SetExpire(time.Duration)
		SetLocalAddress(net.IP)
		SetMaxAge(time.Duration)
		SetMaxIdleConns(int)
		SetTLSConfig(*tls.Config)
		Start()
		Stop()
	}) {
		if c, cached, err := t.Dial("udp"); err == nil && !cached {
			t.Yield(c)
		}
		return t
	},
	func(h proxy.HealthChecker) (_ interface {
		Check(*proxy.Proxy) error
		SetTLSConfig(*tls.Config)
		GetTLSConfig() *tls.Config
		SetRecursionDesired(bool)
		GetRecursionDesired() bool
		SetDomain(domain string)
		GetDomain() string
		SetTCPTransport()
		GetReadTimeout() time.Duration
		SetReadTimeout(time.Duration)
		GetWriteTimeout() time.Duration
		SetWriteTimeout(time.Duration)
		SetLocalAddress(net.IP)
		GetLocalAddress() net.IP
	}) {
		return h
	},
	func() *proxy.Proxy { return proxy.NewProxy("name", "192.0.2.1:53", "dns") },
}
