package cache

import (
	"strings"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// processBudget bounds the octets of all caches of the process.
var processBudget = sync.OnceValue(func() *budget { return &budget{limit: defaultBudget} })

// setZones makes of Zones what lookups and metrics need.
func (c *Cache) setZones() {
	c.label = strings.Join(c.Zones, ",")
	for _, z := range c.Zones {
		name, err := wire.LowerName(z)
		if err != nil {
			continue // no name can be in it
		}
		if len(name) == 1 { // the root has all
			c.zoneNames = nil
			return
		}
		c.zoneNames = append(c.zoneNames, name)
	}
}
