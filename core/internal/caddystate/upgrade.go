package caddystate

import (
	_ "unsafe" // for go:linkname

	"github.com/coredns/caddy"
)

// Inherited is Caddy's note of what another process has handed over, in whose place this one was begun (SIGUSR2).
//
//go:linkname Inherited github.com/coredns/caddy.loadedGob
var Inherited struct {
	ListenerFds map[string]uintptr // by network and address
	Caddyfile   caddy.Input
}
