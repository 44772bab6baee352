//go:build ignore

// This program builds a server with more plugins than plugin.cfg has. Its arguments are the plugins, the file to
// write, and more for go build.
package main

import (
	"log"
	"os"

	"github.com/coredns/coredns/core/custom"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal(`make custom PLUGINS="[NAME:]PACKAGE[@VERSION] [after=NAME | before=NAME], ..." BINARY=FILE`)
	}
	plugins, err := custom.ParsePlugins(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := custom.Build(plugins, custom.Options{Source: ".", Output: os.Args[2], Args: os.Args[3:], Log: os.Stderr}); err != nil {
		log.Fatal(err)
	}
}
