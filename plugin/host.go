package plugin

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/cidr"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Host is a zone as it stands in a Corefile: with or without scheme and port, a
// domain name or a network in CIDR notation.
type Host string

// NormalizeExact is the zones that h stands for: lower case, fully qualified,
// without scheme and port; several for a network whose mask lies between two labels of
// the reverse zone. It is nil if h is no zone.
func (h Host) NormalizeExact() []string {
	_, s := parse.Transport(string(h))
	hosts, _, err := SplitHostPort(s)
	if err != nil {
		return nil
	}
	for i := range hosts {
		hosts[i] = Name(hosts[i]).Normalize()
	}
	return hosts
}

// Normalize is the first zone that h stands for, "" if h is none.
//
// Deprecated: use NormalizeExact, which returns all zones.
func (h Host) Normalize() string {
	warnDeprecated("Normalize")
	if zones := h.NormalizeExact(); len(zones) > 0 {
		return zones[0]
	}
	return ""
}

// MustNormalize is the first zone that h stands for, or an error.
//
// Deprecated: use NormalizeExact, which returns all zones.
func (h Host) MustNormalize() (string, error) {
	warnDeprecated("MustNormalize")
	_, s := parse.Transport(string(h))
	hosts, _, err := SplitHostPort(s)
	if err != nil {
		return "", err
	}
	return Name(hosts[0]).Normalize(), nil
}

func warnDeprecated(name string) {
	if _, file, line, ok := runtime.Caller(2); ok {
		log.Warningf("an external plugin (%s line %d) uses the deprecated function %s", file, line, name)
	}
}

// SplitHostPort takes a server block's key without its scheme apart: the zone, or the
// zones that a network in CIDR notation stands for, and the port, "" if there is none.
func SplitHostPort(s string) (hosts []string, port string, err error) {
	host := s
	if colon := strings.LastIndexByte(s, ':'); colon >= 0 {
		rest := s[colon+1:]
		if rest == "" {
			return nil, "", fmt.Errorf("expecting data after last colon: %q", s)
		}
		if _, err := strconv.Atoi(rest); err == nil {
			host, port = s[:colon], rest
		} else if _, _, err := net.ParseCIDR(s); err != nil && ascii(s) {
			return nil, "", fmt.Errorf("invalid port %q in %q: must be a number", rest, s)
		}
	}
	if len(host) > 255 {
		return nil, "", fmt.Errorf("specified zone is too long: %d > 255", len(host))
	}
	if _, ok := dns.IsDomainName(host); !ok || host == "" || !packs(host) {
		return nil, "", fmt.Errorf("zone is not a valid domain name: %s", host)
	}
	_, network, err := net.ParseCIDR(host)
	if err != nil {
		return []string{host}, port, nil
	}
	if host[0] == ':' || host[0] == '0' && strings.Contains(host, ":") {
		return nil, "", fmt.Errorf("invalid CIDR %s", host)
	}
	return cidr.Reverse(cidr.Split(network)), port, nil
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// ZonesFromArgs is OriginsFromArgsOrServerBlock for who refuses an argument that is no zone: if it is left out,
// nothing tells that the rest does not do what was meant. Each zone is there once, also if several keys have it.
func ZonesFromArgs(args, serverblock []string) ([]string, error) {
	for _, a := range args {
		if Host(a).NormalizeExact() == nil {
			return nil, fmt.Errorf("invalid zone %q", a)
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(OriginsFromArgsOrServerBlock(args, serverblock), func(zone string) bool {
		again := seen[zone]
		seen[zone] = true
		return again
	}), nil
}

// OriginsFromArgsOrServerBlock is the zones of args, normalized, or without args those of the server block's keys. An
// argument that is no zone is left out, a key that is none stays as it is. The result is never nil.
func OriginsFromArgsOrServerBlock(args, serverblock []string) []string {
	zones := []string{}
	for _, a := range args {
		zones = append(zones, Host(a).NormalizeExact()...)
	}
	if len(args) > 0 {
		return zones
	}
	for _, key := range serverblock {
		if all := Host(key).NormalizeExact(); len(all) > 0 {
			zones = append(zones, all...)
		} else {
			zones = append(zones, key)
		}
	}
	return zones
}

// packs reports whether a name has a wire form: dns.IsDomainName lets escapes pass that no octet has.
func packs(name string) bool {
	_, err := wire.AppendName(nil, name)
	return err == nil
}
