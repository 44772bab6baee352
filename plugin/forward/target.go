package forward

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
)

// target is an upstream as the Corefile names it.
type target struct {
	protocol   string
	host       string // an address, or a name
	port       string
	serverName string // of the address alone, "" if none
	named      bool   // host is a name
}

// address is HOST:PORT.
func (t *target) address() string { return net.JoinHostPort(t.host, t.port) }

// endpoint is what upstreams differ in: their addresses, and whether they are asked over QUIC there, which is another
// server than the one that is asked over TCP.
func endpoint(protocol, address string) string {
	if protocol == transport.QUIC || protocol == transport.HTTPS3 {
		return protocol + "://" + address
	}
	return address
}

// maxTargets is how many arguments may name upstreams; a file among them may name any number.
const maxTargets = 15

// parseTargets reads what the Corefile says behind FROM. Endpoints that come again are left out.
func parseTargets(args []string) ([]target, error) {
	if len(args) > maxTargets {
		return nil, fmt.Errorf("more than %d TOs configured: %d", maxTargets, len(args))
	}
	var all []target
	seen := map[string]bool{}
	for _, arg := range args {
		targets, err := parseTarget(arg)
		if err != nil {
			return nil, err
		}
		for _, t := range targets {
			if e := endpoint(t.protocol, t.address()); !seen[e] {
				seen[e] = true
				all = append(all, t)
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no valid upstream addresses found")
	}
	return all, nil
}

// parseTarget reads one argument: an address, a file, or a name.
func parseTarget(arg string) (targets []target, err error) {
	protocol, rest := parse.Transport(arg)
	if (protocol == transport.HTTPS || protocol == transport.HTTPS3) && strings.Contains(rest, "/") {
		return nil, fmt.Errorf("paths are not allowed in HTTPS upstream addresses (the %s path is used by default): %s", "/dns-query", arg)
	}
	addrs, err := parse.HostPortOrFile(arg)
	switch {
	case err == nil:
		for _, a := range addrs {
			t, err := addressTarget(a)
			if err != nil && protocol == transport.DNS {
				return nil, fmt.Errorf("%s: %w", arg, err)
			}
			if err != nil {
				return nil, err
			}
			targets = append(targets, t)
		}
		return targets, nil
	case errors.Is(err, parse.ErrNoNameservers): // a file without any
		return nil, nil
	case rest == "":
		return nil, err
	}
	if err := supported(protocol, arg); err != nil {
		return nil, err
	}
	if scheme, _, ok := strings.Cut(rest, "://"); ok && protocol == transport.DNS {
		return nil, fmt.Errorf("unknown scheme %q in %q%s", scheme, arg, corefile.Choice(scheme, slices.Sorted(maps.Keys(defaultPorts))))
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil || port == "" {
		host, port = strings.TrimSuffix(rest, ":"), defaultPorts[protocol]
	}
	if _, ok := dns.IsDomainName(host); !ok || host == "" || strings.ContainsAny(host, "/\\:% ") {
		return nil, fmt.Errorf("not an IP address, file, or valid domain: %q", arg)
	}
	return []target{{protocol: protocol, host: host, port: port, named: true}}, nil
}

var defaultPorts = map[string]string{
	transport.DNS: transport.Port, transport.TLS: transport.TLSPort, transport.QUIC: transport.QUICPort,
	transport.HTTPS: transport.HTTPSPort, transport.HTTPS3: transport.HTTPSPort,
}

func supported(protocol, text string) error {
	if defaultPorts[protocol] == "" {
		return fmt.Errorf("'%s' is not supported as a destination protocol in forward: %s", protocol, text)
	}
	return nil
}

// addressTarget takes [SCHEME://]ADDRESS[%ZONE]:PORT apart; the zone may also stand at the end. For plain DNS it is that
// of an IPv6 address, for the others a server's name.
func addressTarget(text string) (t target, err error) {
	var rest string
	t.protocol, rest = parse.Transport(text)
	if err := supported(t.protocol, text); err != nil {
		return t, err
	}
	if t.host, t.port, err = net.SplitHostPort(rest); err != nil {
		return t, err
	}
	bare, zone, found := strings.Cut(t.host, "%")
	if !found {
		t.port, zone, _ = strings.Cut(t.port, "%")
	}
	if t.port == "" {
		t.port = defaultPorts[t.protocol]
	}
	addr, err := netip.ParseAddr(bare)
	if err != nil { // it comes from a file, of which all is taken
		return t, fmt.Errorf("nameserver %q is not an IP address", t.host)
	}
	switch {
	case t.protocol != transport.DNS:
		t.host, t.serverName = bare, zone
	case addr.Is4() || zone == "":
		t.host = bare
	default:
		t.host = bare + "%" + zone
	}
	return t, nil
}
