// Command coredns is a DNS server whose behaviour is a chain of plugins, configured by a Corefile.
package main

//go:generate go run directives_generate.go
//go:generate go run owners_generate.go

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/core/plugin" // all plugins of plugin.cfg
)

func main() { coremain.Run() }
