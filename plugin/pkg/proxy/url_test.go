package proxy

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/quic-go/quic-go"
)

// An upstream of HTTPS may be given as a URL.
func TestURL(t *testing.T) {
	var path atomic.Value
	handle := func(w http.ResponseWriter, r *http.Request) {
		path.Store(r.URL.Path)
		w.Header().Set("Content-Type", doh.MimeType)
		w.Write(replyTo(queryOf(r)))
	}
	for protocol, plain := range map[string]*Proxy{
		transport.HTTPS:  httpsUpstream(t, handle),
		transport.HTTPS3: http3Upstream(t, nil, func(*quic.Conn) {}, handle),
	} {
		for suffix, want := range map[string]string{"": doh.Path, "/": doh.Path, doh.Path: doh.Path, "/other": "/other"} {
			url := "https://" + plain.Addr() + suffix
			p := proxyTo(t, url, protocol)
			p.SetTLSConfig(plain.GetTransport().GetTLSConfig())
			if m, err := ask(p, "www.example.org.", Options{}); err != nil || len(m.Answer) != 1 || path.Load() != want {
				t.Errorf("%s %s: got %v, %v, path %v", protocol, url, m, err, path.Load())
			}
			if p.Addr() != url {
				t.Errorf("got %s, want %s", p.Addr(), url)
			}
			if err := p.GetHealthchecker().Check(p); err != nil {
				t.Errorf("%s %s: %v", protocol, url, err)
			}
		}
	}
}

func TestEndpoint(t *testing.T) {
	for _, tc := range []struct{ addr, protocol, hostPort, path string }{
		{"https://dns.example.org", transport.HTTPS, "dns.example.org:443", doh.Path},
		{"https://dns.example.org:8443/x/y", transport.HTTPS, "dns.example.org:8443", "/x/y"},
		{"https://192.0.2.1", transport.HTTPS3, "192.0.2.1:443", doh.Path},
		{"https://[2001:db8::1]", transport.HTTPS, "[2001:db8::1]:443", doh.Path},
		{"https://[2001:db8::1]:8443", transport.HTTPS, "[2001:db8::1]:8443", doh.Path},
		{"https3://192.0.2.1", transport.HTTPS3, "192.0.2.1:443", doh.Path},
		{"192.0.2.1:443", transport.HTTPS, "192.0.2.1:443", doh.Path},
		{"192.0.2.1:53", transport.DNS, "192.0.2.1:53", doh.Path},
		{"192.0.2.1", transport.DNS, "192.0.2.1", doh.Path},
	} {
		if hostPort, path := endpoint(tc.addr, tc.protocol); hostPort != tc.hostPort || path != tc.path {
			t.Errorf("%s of %s: got %s, %s", tc.addr, tc.protocol, hostPort, path)
		}
	}
}

// The zone of an address is not told to the upstream.
func TestZoneIsNotTold(t *testing.T) {
	for addr, want := range map[string]string{
		"https://[fe80::1%eth0]:8443": "[fe80::1]:8443", "https://[fe80::1]": "[fe80::1]:443", "192.0.2.1:443": "192.0.2.1:443",
		"https://dns.example.org": "dns.example.org:443",
	} {
		p := proxyTo(t, addr, transport.HTTPS)
		if r := p.requestFor(&Exchange{}); r.host != want {
			t.Errorf("%s: %s", addr, r.host)
		}
	}
}
