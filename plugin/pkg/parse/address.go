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
//	192.0.2.1  192.0.2.1:53  2001:db8::1  [2001:db8::1]  [2001:db8::1]:53    for plain DNS
//	SCHEME://ADDRESS[:PORT]                                                   for the transports of package transport
//	unix://PATH                                                               as it stands
//	PATH  dns://PATH                                                          of a file in the form of resolv.conf(5)
//
// An argument with a port, or with a colon for one, comes back as it stands, with dns:// if it has that. One without
// comes back as HOST:PORT for plain DNS and as SCHEME://HOST:PORT for the other transports, with the default port. A
// file gives all of its nameserver lines, with port 53; one that has none adds nothing.
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
		if host, hasPort, ok := upstream(addr); hasPort && ok {
			addrs = append(addrs, text)
			continue
		} else if ok {
			addrs = append(addrs, withScheme(trans, net.JoinHostPort(host, defaultPort(trans))))
			continue
		}
		servers, err := nameservers(strings.TrimPrefix(text, transport.DNS+"://"))
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

// HostPort returns s, an IP address with or without a port, as HOST:PORT, with defaultPort where it has none. An IPv6
// address may stand in brackets also without a port.
func HostPort(s, defaultPort string) (string, error) {
	host, port, _ := split(s)
	if _, err := netip.ParseAddr(host); err != nil || hasBracket(host) {
		return "", fmt.Errorf("must specify an IP address: `%s'", s)
	}
	if port == "" {
		port = defaultPort
	}
	return net.JoinHostPort(host, port), nil
}

// upstream is the host of an address that may have any text after a %, and whether there is a colon for a port behind
// it.
func upstream(s string) (host string, hasPort, ok bool) {
	host, _, hasPort = split(s)
	addr, zone, zoned := strings.Cut(host, "%")
	if _, err := netip.ParseAddr(addr); err != nil || zoned && zone == "" || hasBracket(zone) {
		return "", false, false
	}
	return host, hasPort, true
}

// split takes HOST:PORT apart, and [HOST]. What is of neither form is all host.
func split(s string) (host, port string, hasPort bool) {
	if host, port, err := net.SplitHostPort(s); err == nil {
		return host, port, true
	}
	if n := len(s); n > 2 && s[0] == '[' && s[n-1] == ']' && strings.Contains(s, ":") {
		return s[1 : n-1], "", false
	}
	return s, "", false
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
