package dnsserver

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// warnOfSharing warns of listeners that differ in their names and not in their sockets: the same address in two
// notations, all addresses in two ways, plain DNS and TLS on one port. The kernel gives each of them a part of what
// comes, so that it is left to chance which blocks are asked. It is no error, as CoreDNS 1.14.7 takes that.
func warnOfSharing(groups map[string][]*Config, order []string) {
	holder := map[string]string{}
	for _, addr := range order {
		for _, s := range socketsOf(addr) {
			other, ok := holder[s]
			if !ok {
				holder[s] = addr
				continue
			}
			if !slices.Equal(groups[other], groups[addr]) { // else it does not matter who gets a query
				log.Warningf("%s and %s listen on the same address: each gets a part of the queries", other, addr)
				break
			}
		}
	}
}

// socketsOf is the sockets that a listener needs, in a form in which those are equal that the kernel takes for the
// same. There are none for port 0, which stands for another one each time.
func socketsOf(addr string) []string {
	scheme, at, _ := strings.Cut(addr, "://")
	at = socketOf(at)
	if strings.HasSuffix(at, ":0") {
		return nil
	}
	switch scheme {
	case transport.DNS:
		return []string{"udp " + at, "tcp " + at}
	case transport.QUIC, transport.HTTPS3:
		return []string{"udp " + at}
	}
	return []string{"tcp " + at}
}

// socketOf is an address, HOST:PORT, in such a form. Without a host it stands for all addresses, as with one that is
// unspecified: Go has sockets for both families then.
func socketOf(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if n, err := strconv.Atoi(port); err == nil {
		port = strconv.Itoa(n)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if host = a.Unmap().String(); a.IsUnspecified() {
			host = ""
		}
	}
	return net.JoinHostPort(host, port)
}
