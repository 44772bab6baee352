package cache

import (
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

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

// concerns reports whether the query is one for the zones of this cache.
func (c *Cache) concerns(q *wire.Query) bool {
	for _, z := range c.bypassed {
		if wire.Below(q.Lower(), z) {
			return false
		}
	}
	if c.zoneNames == nil {
		return true
	}
	for _, z := range c.zoneNames {
		if wire.Below(q.Lower(), z) {
			return true
		}
	}
	return false
}
