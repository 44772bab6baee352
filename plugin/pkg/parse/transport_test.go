package parse_test

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/parse"
)

func TestTransport(t *testing.T) {
	for _, tc := range []struct{ in, trans, addr string }{
		{"192.0.2.1", "dns", "192.0.2.1"},
		{"dns://192.0.2.1:53", "dns", "192.0.2.1:53"},
		{"tls://192.0.2.1", "tls", "192.0.2.1"},
		{"quic://.:853", "quic", ".:853"},
		{"grpc://example.org", "grpc", "example.org"},
		{"https://example.org/dns-query", "https", "example.org/dns-query"},
		{"https3://example.org", "https3", "example.org"},
		{"unix:///run/dns.sock", "unix", "/run/dns.sock"},
		{"tls://", "tls", ""},
		{"", "dns", ""},
		{"TLS://192.0.2.1", "dns", "TLS://192.0.2.1"},
		{"foo://example.org", "dns", "foo://example.org"},
		{"://example.org", "dns", "://example.org"},
		{"tls:/192.0.2.1", "dns", "tls:/192.0.2.1"},
		{"tls", "dns", "tls"}, // the name of a host
		{"tls://dns://192.0.2.1", "tls", "dns://192.0.2.1"},
	} {
		if trans, addr := parse.Transport(tc.in); trans != tc.trans || addr != tc.addr {
			t.Errorf("%q: got %q, %q, want %q, %q", tc.in, trans, addr, tc.trans, tc.addr)
		}
	}
}
