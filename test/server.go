// Package test runs whole servers: a Corefile, real sockets, real clients. Its functions are also for the tests of plugins of
// others, which link all plugins of this build by importing it.
//
//	i, udp, tcp, err := test.CoreDNSServerAndPorts(`.:0 { whoami }`)
//	defer test.CoreDNSServerStop(i)
//
// Port 0 lets the kernel choose. Servers are quiet: they list no zones at start, and what they log goes nowhere, unless a test
// redirects the output of Go's log afterwards. Several servers may run at one time, but they share the process's metrics.
// Start at CoreDNSServer.
package test

import (
	"io"
	"log"
	"sync"

	"github.com/coredns/coredns/core/dnsserver"

	_ "github.com/coredns/coredns/core"        // the server type
	_ "github.com/coredns/coredns/core/plugin" // all plugins

	"github.com/coredns/caddy"
)

// quiet silences the process once; a test may redirect the log after that.
var quiet = sync.OnceFunc(func() {
	caddy.Quiet = true
	dnsserver.Quiet = true
	log.SetOutput(io.Discard)
})

// CoreDNSServer starts a server with the Corefile given and returns its instance. With an error there is nothing to stop.
func CoreDNSServer(corefile string) (*caddy.Instance, error) {
	quiet()
	return caddy.Start(NewInput(corefile))
}

// CoreDNSServerStop stops a server. It does not call the plugins' shutdown callbacks; caddy.Instance's ShutdownCallbacks does.
func CoreDNSServerStop(i *caddy.Instance) {
	_ = i.Stop() // it logs what goes wrong and returns no error
}

// CoreDNSServerPorts returns the UDP and the TCP address of listener k of i, "" for what it has not. Listeners are in the
// order of the Corefile.
func CoreDNSServerPorts(i *caddy.Instance, k int) (udp, tcp string) {
	servers := i.Servers()
	if k >= len(servers) {
		return "", ""
	}
	if a := servers[k].LocalAddr(); a != nil {
		udp = a.String()
	}
	if a := servers[k].Addr(); a != nil {
		tcp = a.String()
	}
	return udp, tcp
}

// CoreDNSServerAndPorts starts a server as CoreDNSServer does, and returns the addresses of its first listener, too.
func CoreDNSServerAndPorts(corefile string) (i *caddy.Instance, udp, tcp string, err error) {
	i, err = CoreDNSServer(corefile)
	if err != nil {
		return nil, "", "", err
	}
	udp, tcp = CoreDNSServerPorts(i, 0)
	return i, udp, tcp, nil
}
