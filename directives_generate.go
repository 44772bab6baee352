//go:build ignore

// This program writes the two files that link the plugins of plugin.cfg into the server, core/plugin/zplugin.go with
// the imports and core/dnsserver/zdirectives.go with the order, and fetches modules that are not there. Entries in the
// environment variable COREDNS_PLUGINS, name:package separated by commas, are added at the end.
package main

import (
	"log"
	"os"

	"github.com/coredns/coredns/core/custom"
)

func main() {
	log.SetFlags(0)
	if _, err := custom.Update(".", os.Getenv("COREDNS_PLUGINS")); err != nil {
		log.Fatal(err)
	}
}
