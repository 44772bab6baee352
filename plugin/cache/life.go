package cache

import (
	"github.com/coredns/coredns/core/dnsserver"

	"github.com/coredns/caddy"
)

// attach lets ca begin and end with the configuration that c sets up.
func (ca *Cache) attach(c *caddy.Controller) {
	block := dnsserver.GetConfig(c)
	limit, text := limitOf(c, ca.memory), textOf(c)
	c.OnStartup(func() error {
		ca.view = block.ViewName
		processBudget().set(*limit)
		ca.bypassFor(block.Chain())
		if ca.allOurs(block.Chain()) {
			ca.text = text
		}
		ca.takeOver()
		ca.startSweeping(sweepPause)
		return nil
	})
	c.OnRestart(func() error {
		ca.offer()
		return nil
	})
	c.OnRestartFailed(func() error {
		processBudget().set(*limit)
		ca.takeBack()
		return nil
	})
	c.OnShutdown(func() error {
		ca.stopSweeping()
		ca.giveUp()
		return nil
	})
}

// limitKey is what the memory for all caches is found by in a configuration.
type limitKey struct{}

// limitOf is the memory for all caches of the configuration that c sets up: what the first server block says that says anything.
func limitOf(c *caddy.Controller, memory int64) *int64 {
	limit, ok := c.Get(limitKey{}).(*int64)
	if !ok {
		limit = new(int64)
		c.Set(limitKey{}, limit)
	}
	if *limit == 0 {
		*limit = memory
	}
	return limit
}
