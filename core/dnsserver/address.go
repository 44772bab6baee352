package dnsserver

import (
	"fmt"
	"net"
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// zoneAddr is a server block's key taken apart, and later the address that it listens on.
type zoneAddr struct {
	Transport string
	Zone      string
	Port      string
	Address   string // "" is any address
}

// String is the key as it is put back into the server block, and as errors name it.
func (z zoneAddr) String() string {
	s := z.Transport + "://" + z.Zone + ":" + z.Port
	if z.Address != "" {
		s += " on " + z.Address
	}
	return s
}

// listener is the address of the server that serves the key.
func (z zoneAddr) listener() string { return z.Transport + "://" + net.JoinHostPort(z.Address, z.Port) }

// defaultPort is the port of a transport's keys that name none.
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
	return Port
}

// keySchemes is what keys may begin with.
var keySchemes = []string{transport.DNS, transport.TLS, transport.QUIC, transport.GRPC, transport.HTTPS, transport.HTTPS3}

// parseKey takes one key apart. A network in CIDR notation may stand for several zones.
func parseKey(key string) ([]zoneAddr, error) {
	trans, rest := parse.Transport(key)
	if trans == transport.UNIX {
		return nil, fmt.Errorf("cannot serve %s: there is no server for %s (allowed: %s)", key, trans, strings.Join(keySchemes, ", "))
	}
	if scheme, _, ok := strings.Cut(rest, "://"); ok {
		near := corefile.Nearest(scheme, keySchemes)
		if near != "" {
			near = fmt.Sprintf(": did you mean %q?", near+"://"+strings.TrimPrefix(rest, scheme+"://"))
		}
		return nil, fmt.Errorf("unknown scheme %q in %q: must be one of %s%s", scheme, key, strings.Join(keySchemes, ", "), near)
	}
	hosts, port, err := plugin.SplitHostPort(rest)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, keyRemedy(key, rest))
	}
	if port == "" {
		port = defaultPort(trans)
	}
	var out []zoneAddr
	for _, h := range hosts {
		out = append(out, zoneAddr{Transport: trans, Zone: plugin.Name(h).Normalize(), Port: port})
	}
	return out, nil
}

// keyRemedy is what a key that is refused should look like.
func keyRemedy(key, rest string) string {
	switch {
	case strings.HasPrefix(rest, ":") && strings.Count(rest, ":") == 1:
		return fmt.Sprintf("%q has no zone: did you mean %q?", key, strings.TrimSuffix(key, rest)+"."+rest)
	case strings.HasSuffix(rest, ":"):
		return ": leave the colon out for the default port"
	case strings.HasSuffix(rest, "{"):
		return "" // told where the word is looked at
	}
	return " (a key is [SCHEME://]ZONE[:PORT], and ZONE a domain name or a network such as 192.0.2.0/24)"
}

// SplitProtocolHostPort takes a server's address apart: "tls://127.0.0.1:853" is tls, 127.0.0.1
// and 853. Without a scheme the protocol is "".
func SplitProtocolHostPort(address string) (protocol string, ip string, port string, err error) {
	parts := strings.Split(address, "://")
	switch len(parts) {
	case 1:
		ip, port, err = net.SplitHostPort(parts[0])
	case 2:
		protocol = parts[0]
		ip, port, err = net.SplitHostPort(parts[1])
	default:
		err = fmt.Errorf("provided value is not in an address format : %s", address)
	}
	if err != nil {
		return "", "", "", err
	}
	return protocol, ip, port, nil
}

// overlaps finds keys that would listen for the same queries.
type overlaps struct {
	taken   map[zoneAddr]string // by key and address: where it stands in the Corefile
	anyAddr map[zoneAddr]string // by key: served on all addresses
	bound   map[zoneAddr]string // by key: served on some address
}

func newOverlaps() *overlaps {
	return &overlaps{map[zoneAddr]string{}, map[zoneAddr]string{}, map[zoneAddr]string{}}
}

// add notes a key with its address, and where it stands. shared says that its block has filters, so that
// several may serve the same key.
func (o *overlaps) add(z zoneAddr, place string, shared bool) error {
	if at, ok := o.taken[z]; ok && !shared {
		return fmt.Errorf("cannot serve %s - it is already defined: at %s; make one block of them, or give each of them a view", z, at)
	}
	key := z
	key.Address = ""
	at, overlap := o.anyAddr[key]
	if z.Address == "" {
		at, overlap = o.bound[key]
	}
	if overlap {
		return fmt.Errorf("cannot serve %s - zone overlap listener capacity with %s: at %s; one of them listens on all addresses: give each a bind", z, key, at)
	}
	if !shared {
		o.taken[z] = place
	}
	if z.Address == "" {
		o.anyAddr[key] = place
	} else {
		o.bound[key] = place
	}
	return nil
}

// preferred reports whether a zone is written in the syntax that RFC 1035 §2.3.1
// prefers; the root and reverse zones always are.
func preferred(zone string) bool {
	if zone == "." || plugin.Name("in-addr.arpa.").Matches(zone) || plugin.Name("ip6.arpa.").Matches(zone) {
		return true
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(zone, "."), ".") {
		for i, c := range []byte(label) {
			letter := c|0x20 >= 'a' && c|0x20 <= 'z'
			digit := c >= '0' && c <= '9'
			switch {
			case letter, digit && i > 0, c == '-' && i > 0 && i < len(label)-1:
			default:
				return false
			}
		}
		if label == "" {
			return false
		}
	}
	return true
}
