package parse

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/transport"
)

// ErrNoNameservers is returned by HostPortOrFile if there is nothing to return, for instance because the only
// argument is a file without a nameserver line.
var ErrNoNameservers = errors.New("no nameservers found")

// HostPortOrFile returns the addresses that s names, in order. Each argument is one of
//
//	192.0.2.1  192.0.2.1:53  2001:db8::1  [2001:db8::1]:53    for plain DNS
//	SCHEME://ADDRESS[:PORT]                                    for the transports of package transport
//	unix://PATH                                                as it stands
//	PATH                                                       of a file in the form of resolv.conf(5)
//
// A result is HOST:PORT for plain DNS and SCHEME://HOST:PORT for the other transports, with the default port where
// none is given. A file gives all of its nameserver lines, with port 53; one that has none adds nothing.
//
// The error is ErrNoNameservers if nothing was found, and tells of the first argument that is neither an address
// nor a file that can be read.
func HostPortOrFile(s ...string) ([]string, error) {
	var addrs []string
	for _, text := range s {
		trans, addr := Transport(text)
		if addr == "" {
			return nil, fmt.Errorf("invalid address: %q", text)
		}
		if trans == transport.UNIX {
			addrs = append(addrs, text)
			continue
		}
		if hostPort, ok := upstream(addr, defaultPort(trans)); ok {
			addrs = append(addrs, withScheme(trans, hostPort))
			continue
		}
		servers, err := nameservers(text)
		if err != nil {
			return nil, fmt.Errorf("not an IP address or file %q: %w", text, err)
		}
		addrs = append(addrs, servers...)
	}
	if len(addrs) == 0 {
		return nil, ErrNoNameservers
	}
	return addrs, nil
}

// HostPort returns s, an IP address with or without a port, as HOST:PORT, with defaultPort where it has none.
func HostPort(s, defaultPort string) (string, error) {
	host, port := split(s, defaultPort)
	if _, err := netip.ParseAddr(host); err != nil || hasBracket(host) {
		return "", fmt.Errorf("must specify an IP address: `%s'", s)
	}
	return net.JoinHostPort(host, port), nil
}

// upstream is HostPort for addresses that may have any text after a %.
func upstream(s, defaultPort string) (string, bool) {
	host, port := split(s, defaultPort)
	addr, zone, zoned := strings.Cut(host, "%")
	if _, err := netip.ParseAddr(addr); err != nil || zoned && zone == "" || hasBracket(zone) {
		return "", false
	}
	return net.JoinHostPort(host, port), true
}

// split returns the host and the port of s, or all of s and defaultPort if it is not of the form HOST:PORT.
func split(s, defaultPort string) (host, port string) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return s, defaultPort
	}
	if port == "" {
		port = defaultPort
	}
	return host, port
}

// hasBracket tells whether zone, or a host with a zone, has a bracket, after which HOST:PORT could not be split.
func hasBracket(zone string) bool { return strings.ContainsAny(zone, "[]") }

func withScheme(trans, hostPort string) string {
	if trans == transport.DNS {
		return hostPort
	}
	return trans + "://" + hostPort
}

// nameservers returns the servers that the resolv.conf-like file at path names.
func nameservers(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	config, err := dns.ClientConfigFromReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	servers := make([]string, len(config.Servers))
	for i, server := range config.Servers {
		servers[i] = net.JoinHostPort(server, config.Port)
	}
	return servers, nil
}
