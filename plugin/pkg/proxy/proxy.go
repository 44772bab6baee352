package proxy

import (
	cryptorand "crypto/rand"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/policy"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

const defaultReadTimeout = 2 * time.Second

// Proxy is one upstream.
type Proxy struct {
	name     string
	addr     string // as it was given
	hostPort string // of addr
	path     string // of addr, for HTTPS
	host     string // hostPort as requests of HTTPS tell it
	protocol string

	readTimeout atomic.Int64
	transport   *Transport // settings, and connections of those who dial by themselves
	doh         atomic.Pointer[dohSettings]
	web         webClient
	redirected  atomic.Int64 // when a connection was last told of another place, in the engine's time; 0 if none was
	engine      engine
	shares      bool                  // sockets; see shared.go
	group       atomic.Pointer[group] // nil before the first query over UDP
	left        bool                  // the group, or to be in one; guarded by groups.mu
	dismissed   bool                  // guarded by the lock of the group's engine
	counts      counts
	cookies     cookies
	randomCase  bool
	onIgnored   func(reason string, n int)
	latency     *policy.Latency // nil unless somebody wants to know

	fails  atomic.Uint32
	health HealthChecker
	prober prober

	where address
}

type dohSettings struct{ method, host string }

// NewProxy is the upstream at addr, HOST:PORT; one of HTTPS may also be a URL, https://HOST[:PORT][/PATH]. proxyName,
// usually the plugin's name, is a label of metrics. protocol is one of package transport's DNS, TLS, HTTPS, HTTPS3 and
// QUIC; with another one, all queries fail.
func NewProxy(proxyName, addr, protocol string) *Proxy {
	p := &Proxy{name: proxyName, addr: addr, protocol: protocol}
	p.hostPort, p.path = endpoint(addr, protocol)
	p.host = withoutZone(p.hostPort)
	p.where.init(p.hostPort)
	p.readTimeout.Store(int64(defaultReadTimeout))
	p.doh.Store(&dohSettings{method: http.MethodPost})
	p.transport = newTransport(p)
	p.counts.init(p)
	cryptorand.Read(p.cookies.client[:]) // never fails
	p.engine.init(p)
	p.health = NewHealthChecker(proxyName, protocol, true, ".")
	p.prober.init(p)
	return p
}

// endpoint is the host and port of an address, and the path of requests there.
func endpoint(addr, protocol string) (hostPort, path string) {
	hostPort, path = addr, doh.Path
	if protocol != transport.HTTPS && protocol != transport.HTTPS3 {
		return hostPort, path
	}
	if _, rest, ok := strings.Cut(addr, "://"); ok {
		hostPort = rest
	}
	if at := strings.IndexByte(hostPort, '/'); at >= 0 {
		if len(hostPort) > at+1 {
			path = hostPort[at:]
		}
		hostPort = hostPort[:at]
	}
	if _, _, err := net.SplitHostPort(hostPort); err != nil {
		hostPort = net.JoinHostPort(strings.Trim(hostPort, "[]"), transport.HTTPSPort)
	}
	return hostPort, path
}

// withoutZone is a host and port as a request tells it: without the zone of an address, which means something on this
// machine only (RFC 6874 §4).
func withoutZone(hostPort string) string {
	a, err := netip.ParseAddrPort(hostPort)
	if err != nil || a.Addr().Zone() == "" {
		return hostPort
	}
	return netip.AddrPortFrom(a.Addr().WithZone(""), a.Port()).String()
}

// Addr is the upstream's address as NewProxy got it.
func (p *Proxy) Addr() string { return p.addr }

// Protocol is how the upstream is asked: one of the transports of package transport.
func (p *Proxy) Protocol() string { return p.protocol }

// SetTLSConfig makes an upstream of plain DNS or TLS be asked over TLS with cfg, or sets how one of HTTPS is asked.
// Without a name in it, the certificate must be for the upstream's address.
func (p *Proxy) SetTLSConfig(cfg *tls.Config) {
	p.transport.SetTLSConfig(cfg)
	if p.health != nil {
		p.health.SetTLSConfig(cfg)
	}
}

// SetExpire sets how long a socket or connection may be idle; 10s if it is not set.
func (p *Proxy) SetExpire(expire time.Duration) { p.transport.SetExpire(expire) }

// SetMaxAge sets how old a socket or connection may become; 0 means any age.
func (p *Proxy) SetMaxAge(maxAge time.Duration) { p.transport.SetMaxAge(maxAge) }

// SetMaxIdleConns sets how many sockets, and how many connections, may be idle; 0 means any number.
func (p *Proxy) SetMaxIdleConns(n int) { p.transport.SetMaxIdleConns(n) }

// SetLocalAddress sets the address that queries are sent from.
func (p *Proxy) SetLocalAddress(addr net.IP) {
	p.transport.SetLocalAddress(addr)
	if p.health != nil {
		p.health.SetLocalAddress(addr)
	}
}

// SetReadTimeout sets how long to wait for a reply; 2s if it is not set.
func (p *Proxy) SetReadTimeout(duration time.Duration) { p.readTimeout.Store(int64(duration)) }

// SetHTTPClient makes an HTTPS or HTTPS3 upstream be asked with client.
func (p *Proxy) SetHTTPClient(client *http.Client) { p.web.given.Store(client) }

// SetDOHRequestOptions sets the method of requests to an HTTPS upstream, GET or POST.
func (p *Proxy) SetDOHRequestOptions(method string) {
	s := *p.doh.Load()
	s.method = method
	p.doh.Store(&s)
}

// SetDOHHost sets the Host header of requests to an HTTPS upstream, for one that is known by its address.
func (p *Proxy) SetDOHHost(host string) {
	s := *p.doh.Load()
	s.host = host
	p.doh.Store(&s)
}

// RandomizeCase makes queries over UDP have letters of random case, which their replies must repeat. The owner of
// the query gets the reply with its own letters. It belongs before the first query.
func (p *Proxy) RandomizeCase() { p.randomCase = true }

// Measure makes the Proxy note how long replies take, which Latency tells.
func (p *Proxy) Measure() {
	if p.latency == nil {
		p.latency = new(policy.Latency)
	}
}

// Latency is how long replies took of late, nil without Measure.
func (p *Proxy) Latency() *policy.Latency { return p.latency }

// DoHHost is what SetDOHHost set.
func (p *Proxy) DoHHost() string { return p.doh.Load().host }

// GetTransport is the upstream's Transport. Its settings are the Proxy's.
func (p *Proxy) GetTransport() *Transport { return p.transport }

// GetHealthchecker is what asks whether the upstream is well, nil for an unknown protocol.
func (p *Proxy) GetHealthchecker() HealthChecker { return p.health }

// Start sets how often a failed upstream is probed. Nothing runs before it is needed. From then on the upstream's
// counters are there.
func (p *Proxy) Start(duration time.Duration) {
	p.prober.start(duration)
	p.counts.begin(p)
}

// Stop ends what is under way with an error, closes all sockets and connections, and waits for all goroutines. The
// Proxy cannot be used any more. Stopping twice does no harm.
func (p *Proxy) Stop() {
	p.prober.stop()
	p.engine.stop()
	p.leave()
	p.transport.Stop()
	p.web.closeIdle()
}

// secured reports whether the upstream is asked over TLS.
func (p *Proxy) secured() bool {
	return p.protocol == transport.TLS || p.transport.conf.Load().tls != nil
}
