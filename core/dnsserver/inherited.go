package dnsserver

import (
	"os"

	"github.com/coredns/coredns/core/internal/caddystate"

	"github.com/coredns/caddy"
)

// A process that takes the place of another one (SIGUSR2) has the sockets of all its servers, by their Address. Those
// that no server of its own takes stay open, and the system goes on to give them queries, which nobody would read. So
// it makes as many servers at an address as there are sockets there, and closes what is left: sockets of addresses
// that the machine does not have any more, say.

// socketsAt is how many servers are to share an address: want, or as many as there are sockets that were handed over.
func socketsAt(addr string, want int) int {
	for caddy.IsUpgrade() && isInherited(addressOf(addr, linkOf(addr), want)) {
		want++
	}
	return want
}

func isInherited(address string) bool {
	for _, network := range []string{"tcp", "udp"} {
		if _, ok := caddystate.Inherited.ListenerFds[network+address]; ok {
			return true
		}
	}
	return false
}

// closeUnclaimed closes what was handed over and is no server's.
func (g *generation) closeUnclaimed() {
	mine := map[string]bool{}
	for _, s := range g.servers {
		mine["tcp"+s.Address()], mine["udp"+s.Address()] = true, true
	}
	for key, fd := range caddystate.Inherited.ListenerFds {
		if !mine[key] {
			os.NewFile(fd, key).Close()
		}
	}
}
