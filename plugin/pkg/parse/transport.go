package parse

import (
	"strings"

	"github.com/coredns/coredns/plugin/pkg/transport"
)

// Transport splits the scheme from s: "tls" and "192.0.2.1" for "tls://192.0.2.1". A text without one of the
// schemes of package transport, in lower case, is of transport.DNS and comes back whole.
func Transport(s string) (trans string, addr string) {
	scheme, rest, found := strings.Cut(s, "://")
	if !found {
		return transport.DNS, s
	}
	switch scheme {
	case transport.DNS, transport.TLS, transport.QUIC, transport.GRPC,
		transport.HTTPS, transport.HTTPS3, transport.UNIX:
		return scheme, rest
	}
	return transport.DNS, s
}

// defaultPort returns the port of a transport that has ports.
func defaultPort(trans string) string {
	switch trans {
	case transport.TLS:
		return transport.TLSPort
	case transport.QUIC:
		return transport.QUICPort
	case transport.GRPC:
		return transport.GRPCPort
	case transport.HTTPS, transport.HTTPS3:
		return transport.HTTPSPort
	}
	return transport.Port
}
