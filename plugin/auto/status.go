package auto

import "github.com/coredns/coredns/plugin/pkg/status"

// ZoneStatus implements status.Zones.
func (a Auto) ZoneStatus() []status.Zone {
	a.Zones.mu.RLock()
	defer a.Zones.mu.RUnlock()
	all := make([]status.Zone, 0, len(a.Zones.Z))
	for _, z := range a.Zones.Z {
		all = append(all, z.Status("auto"))
	}
	return all
}
