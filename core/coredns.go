// Package core registers the server type "dns". Programs that embed the server, and tests of plugins,
// import it for this effect; it exports nothing. It has no code of its own. Start at dnsserver.NewServer.
package core

import (
	_ "github.com/coredns/coredns/core/dnsserver" // registers the server type
)
