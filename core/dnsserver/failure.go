package dnsserver

import (
	"io"
	"time"

	"github.com/coredns/coredns/core/internal/caddystate"
	"github.com/coredns/coredns/plugin/pkg/log"
)

// This file ends a configuration that fails to start. Caddy tells nobody of it. What becomes of the one whose place it
// was to take stands in restart.go.

// SetupFailed ends a configuration of which a setup function has failed; package corefile calls it.
func (d *dnsContext) SetupFailed() {
	caddystate.ClaimHooks().Remove()
	if err := d.ends.run(time.Now().Add(endTime)); err != nil {
		log.Errorf("Ending a configuration that cannot be set up: %v", err)
	}
}

// watched is functions of a first start; the first error of theirs ends it.
func (g *generation) watched(starts []func() error) (all []func() error) {
	for _, start := range starts {
		all = append(all, func() error {
			err := start()
			if err != nil {
				g.failFirst(g.startupFailed)
			}
			return err
		})
	}
	return all
}

// failFirst ends a configuration that fails to start and that is to take no other one's place: a program that embeds
// the server may go on, and start another one. end ends its plugins.
func (g *generation) failFirst(end func()) {
	g.mu.Lock()
	hooks := g.hooks
	g.mu.Unlock()
	hooks.Remove()
	caddystate.ClaimHooks().Remove() // if it did not come to its begin
	g.closeSockets()
	end()
}

// closeSockets closes what a generation has opened that fails to start.
func (g *generation) closeSockets() {
	g.mu.Lock()
	sockets := g.sockets
	g.sockets = nil
	g.mu.Unlock()
	for _, s := range sockets {
		s.Close()
	}
}

// tried notes a socket that was opened, or the error that ends a first start. g may be nil.
func (g *generation) tried(socket io.Closer, err error) error {
	if g == nil {
		return err
	}
	g.mu.Lock()
	starting, first := g.begun && !g.serving, g.previous == nil
	if starting && err == nil {
		g.sockets = append(g.sockets, socket)
	}
	g.mu.Unlock()
	if starting && first && err != nil {
		g.failFirst(g.endFailed)
	}
	return err
}

// startupFailed ends the plugins of a generation of which a startup function has failed. Which of them had begun is
// known of those only that told it then.
func (g *generation) startupFailed() {
	g.plugins = g.registeredLate()
	g.endFailed()
}

// endFailed ends the plugins of a generation that failed to start.
func (g *generation) endFailed() {
	if err := g.endPlugins(); err != nil {
		log.Errorf("Shutting down a configuration that failed to start: %v", err)
	}
}
