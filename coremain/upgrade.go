package coremain

import (
	_ "unsafe" // for go:linkname

	"github.com/coredns/caddy"
)

// isUpgrade is Caddy's note that the process was begun by another one in its place (SIGUSR2), which hands over its
// sockets and the text of its Corefile.
//
//go:linkname isUpgrade github.com/coredns/caddy.isUpgrade
var isUpgrade bool

// endUpgrade makes a process that has taken over, with the configuration input, like any other one. Caddy would go on
// to take it for one that takes over: it would read the Corefile from what has been handed over, which comes once, and
// have a reload open and close numbers of descriptors which were those of sockets then.
//
// It is called when the process serves. Nothing reads isUpgrade at that time: reloads begin later.
func endUpgrade(input caddy.Input) {
	if !isUpgrade {
		return
	}
	isUpgrade = false
	stdin.once.Do(func() { stdin.input = input })
	if input.Path() == defaultFile {
		here.found()
	}
	// Caddy notes for SIGUSR1 who loads the Corefile. What is wrong with it a reload will tell.
	_, _ = caddy.LoadCaddyfile(serverType)
}
