package cache

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/parse"

	"github.com/coredns/caddy"
)

// askers are the directives that ask the addresses that they name.
var askers = []string{"forward", "grpc"}

// asksNeighbours reports whether the block that c sets up asks server blocks of the same Corefile, by the port of one and an address of its *bind*, or
// a loopback address: what these answer is for them and their files to say.
func asksNeighbours(c *caddy.Controller) bool {
	hosts := map[string][]string{} // by port
	for _, block := range dnsserver.Blocks(c) {
		for _, key := range block.ServerBlockKeys {
			if _, _, port, err := dnsserver.SplitProtocolHostPort(key); err == nil {
				hosts[port] = append(hosts[port], dnsserver.GetConfig(&block).ListenHosts...)
			}
		}
	}
	for _, directive := range askers {
		for word := range words(dnsserver.Stanza(c, directive)) {
			addrs, err := parse.HostPortOrFile(strings.Replace(word, "localhost", "127.0.0.1", 1))
			if err != nil {
				continue // another word
			}
			for _, addr := range addrs {
				_, addr = parse.Transport(addr)
				host, port, _ := net.SplitHostPort(addr)
				host, _, _ = strings.Cut(host, "%") // the name that its certificate has
				ip, err := netip.ParseAddr(host)
				if at := hosts[port]; slices.Contains(at, host) || err == nil && ip.IsLoopback() && len(at) > 0 {
					return true
				}
			}
		}
	}
	return false
}
