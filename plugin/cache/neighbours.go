package cache

import (
	"net"
	"net/netip"
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
				if listenersOf(c)[port].hear(host) {
					return true
				}
			}
		}
	}
	return false
}

// listeners are the hosts on which server blocks listen at a port, as *bind* has them.
type listeners map[string]struct{}

// hear reports whether a query to host comes to one of l.
func (l listeners) hear(host string) bool {
	if _, ok := l[host]; ok {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() && len(l) > 0
}

// listenersOf are those of all server blocks, by port. All *bind* have been set up before the first cache.
func listenersOf(c *caddy.Controller) map[string]listeners {
	return once(c, "cache/listeners", func() map[string]listeners {
		all := map[string]listeners{}
		for _, block := range dnsserver.Blocks(c) {
			for _, key := range block.ServerBlockKeys {
				_, _, port, err := dnsserver.SplitProtocolHostPort(key)
				if err != nil {
					continue
				}
				if all[port] == nil {
					all[port] = listeners{}
				}
				for _, host := range dnsserver.GetConfig(&block).ListenHosts {
					all[port][host] = struct{}{}
				}
			}
		}
		return all
	})
}
