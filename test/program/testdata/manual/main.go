// Manual is a program that registers the server type by itself, if it is built to.
package main

import (
	"fmt"
	"slices"

	"github.com/coredns/coredns/core/dnsserver"

	"github.com/coredns/caddy"
)

func main() {
	registered := func() bool { return slices.Contains(caddy.ListPlugins()["server_types"], "dns") }
	fmt.Println(registered())
	err := dnsserver.Register()
	fmt.Println(registered(), err, dnsserver.Register())
}
