package control

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
)

// The certificates of a block are those for the names that it has some for, as with ACME, and that for its zone.
func TestLeaves(t *testing.T) {
	get := func(known ...string) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if !slices.Contains(known, hello.ServerName) {
				return nil, errors.New("none is for it")
			}
			return &tls.Certificate{Leaf: &x509.Certificate{DNSNames: []string{hello.ServerName}}}, nil
		}
	}
	for _, tc := range []struct {
		config dnsserver.Config
		want   []string
	}{
		{dnsserver.Config{Zone: "example.org.", TLSIdentity: "*.example.org dns.example.org", TLSConfig: &tls.Config{GetCertificate: get("dns.example.org", "*.example.org")}}, []string{"*.example.org", "dns.example.org"}},
		{dnsserver.Config{Zone: "example.org.", TLSIdentity: "0a0b", TLSConfig: &tls.Config{GetCertificate: get("example.org")}}, []string{"example.org"}},
		{dnsserver.Config{Zone: ".", TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Leaf: &x509.Certificate{DNSNames: []string{"a"}}}}}}, []string{"a"}},
	} {
		var got []string
		for _, leaf := range leaves(&tc.config) {
			got = append(got, leaf.DNSNames...)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q: %q, want %q", tc.config.TLSIdentity, got, tc.want)
		}
	}
}
