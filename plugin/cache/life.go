package cache

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/memory"

	"github.com/coredns/caddy"
)

// attach lets ca begin and end with the configuration that c sets up.
func (ca *Cache) attach(c *caddy.Controller) {
	block := dnsserver.GetConfig(c)
	want, text := wantOf(c, &ca.settings), textOf(c)
	ca.around = aroundOf(c)
	if asksNeighbours(c) {
		text += ca.around
	}
	c.OnStartup(func() error {
		ca.view = block.ViewName
		processBudget().set(want.octets(memory.Limit()))
		want.warn(memory.Limit())
		ca.bypassFor(block.Chain())
		if ca.allOurs(block.Chain()) {
			ca.text = text
		}
		ca.takeOver()
		ca.startSweeping(sweepPause)
		c.OnShutdown(func() error {
			ca.stopSweeping()
			ca.giveUp()
			return nil
		})
		return nil
	})
	c.OnRestart(func() error {
		ca.offer()
		return nil
	})
	c.OnRestartFailed(func() error {
		processBudget().set(want.octets(memory.Limit()))
		ca.takeBack()
		return nil
	})
}
