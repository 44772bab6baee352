package dnsserver

import (
	"fmt"
	"sort"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/coredns/caddy"
)

// Serving, if not nil, is called when all servers of a configuration listen: of the first one, and of each that a
// reload has brought. A process that takes the place of another one calls it before that ends. Programs set it before
// they start.
var Serving func(*caddy.Instance)

// announce says that all servers of the configuration listen, once.
func (g *generation) announce() {
	if g == nil {
		return
	}
	g.announced.Do(func() {
		memory.Settle()
		if Serving != nil {
			Serving(g.instance)
		}
	})
}

// Listens is closed when all servers of c's configuration have the sockets that they serve. It is for startup
// functions, which are called when the servers are made and listen nowhere yet; it is nil if there are none to be.
func Listens(c *caddy.Controller) <-chan struct{} {
	d := c.Context().(*dnsContext)
	if len(d.servers) == 0 || d.servers[0].generation == nil {
		return nil
	}
	return d.servers[0].generation.settled
}

// OnStartupComplete lists the zones that are served on standard output, or in the log if that is JSON.
func (s *Server) OnStartupComplete() {
	s.generation.announce()
	if Quiet || s.nth > 0 {
		return
	}
	log.Print(s.listing())
}

// listing has a line for each zone, and one before it if the zone is written oddly.
func (s *Server) listing() string {
	trans, ip, port, err := SplitProtocolHostPort(s.Addr)
	if err != nil {
		return s.Addr + "\n"
	}
	seen := map[string]bool{}
	var zones []string
	for _, c := range s.configs {
		if !seen[c.Zone] {
			seen[c.Zone] = true
			zones = append(zones, c.Zone)
		}
	}
	sort.Strings(zones)
	scheme, at := "", ""
	if trans != "" && trans != transport.DNS {
		scheme = trans + "://"
	}
	if ip != "" {
		at = " on " + ip
	}
	var b strings.Builder
	for _, z := range zones {
		if !preferred(z) {
			fmt.Fprintf(&b, "Warning: Domain %q does not follow RFC1035 preferred syntax\n", z)
		}
		fmt.Fprintf(&b, "%s%s:%s%s\n", scheme, z, port, at)
	}
	return b.String()
}
