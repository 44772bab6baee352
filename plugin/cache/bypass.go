package cache

import (
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// ZoneBypasser is a plugin that answers from zones that change at any time, so that nothing of them is to be kept.
// The cache of its block, wherever either of them stands in the chain, neither looks up nor keeps anything for
// names in them: such queries go on to the plugins below.
type ZoneBypasser interface {
	// CacheBypassZones is these zones. It is called once, when the server starts.
	CacheBypassZones() []string
}

// bypassFor makes c leave out the zones that the handlers of its block name. It comes before the first query.
func (c *Cache) bypassFor(chain []plugin.Handler) {
	for _, h := range chain {
		b, ok := h.(ZoneBypasser)
		if !ok {
			continue
		}
		for _, z := range b.CacheBypassZones() {
			name, err := wire.LowerName(dns.Fqdn(z))
			if err != nil {
				continue // no name can be in it
			}
			c.bypassed = append(c.bypassed, name)
		}
	}
}
