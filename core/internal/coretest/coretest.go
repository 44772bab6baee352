// Package coretest makes the services that tests of transports serve, for transports do not know how a chain is made.
//
//	handlers ──chain.Build──▶ Decider ──▶ Service, with the limits that listeners have by default
//
// It is for tests only, and knows both sides of service.Decider. Start at Service.
package coretest

import (
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/chain"
	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin"
)

// Service is a Service of one block for all names, whose chain are the handlers. Names of "panic" have a block of their
// own, of the same: it leaves the wire lane when they panic.
func Service(t testing.TB, label string, handlers ...plugin.Handler) *service.Service {
	t.Helper()
	var plugins []plugin.Plugin
	for _, h := range handlers {
		plugins = append(plugins, func(plugin.Handler) plugin.Handler { return h })
	}
	// No cookies, no padding, no signatures: tests of those make a Finisher of their own.
	finish := new(reply.Finisher)
	var blocks []chain.Block
	for _, zone := range []string{".", "panic."} {
		blocks = append(blocks, chain.Block{Zone: zone, Plugins: plugins, Filters: new([]chain.FilterFunc), View: new(string)})
	}
	c, err := chain.Build(chain.Options{Self: t, Label: label, Finish: finish}, blocks)
	if err != nil {
		t.Fatal(err)
	}
	return &service.Service{
		Decider: c, Label: label, Wire: c.Wire(), Finish: finish, Queries: -1,
		Read: 3 * time.Second, Write: 5 * time.Second, Idle: 10 * time.Second,
		Limits: service.Limits{Bits4: 32, Bits6: 56, Pipeline: 64, QueryBytes: 65535, Handshake: 3 * time.Second},
	}
}
