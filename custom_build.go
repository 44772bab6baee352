//go:build ignore

// This program builds a server with other plugins than plugin.cfg has. Its arguments are the plugins that come to those of the list,
// the file to write, and more for go build. With -list, none need come.
package main

import (
	"flag"
	"log"
	"os"

	"github.com/coredns/coredns/core/custom"
)

func main() {
	log.SetFlags(0)
	list := flag.String("list", "", "the list of plugins that stands in for plugin.cfg")
	flag.Parse()
	if flag.NArg() < 2 {
		log.Fatal(`make custom PLUGINS="[NAME:]PACKAGE[@VERSION] [after=NAME | before=NAME], ..." [LIST=FILE] BINARY=FILE`)
	}
	var plugins []custom.Plugin
	if flag.Arg(0) != "" || *list == "" {
		var err error
		if plugins, err = custom.ParsePlugins(flag.Arg(0)); err != nil {
			log.Fatal(err)
		}
	}
	o := custom.Options{Source: ".", List: *list, Output: flag.Arg(1), Args: flag.Args()[2:], Log: os.Stderr}
	if err := custom.Build(plugins, o); err != nil {
		log.Fatal(err)
	}
}
