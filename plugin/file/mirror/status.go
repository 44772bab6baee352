package mirror

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/status"
)

// ZoneStatus implements status.Zones.
func (m *Mirror) ZoneStatus() []status.Zone {
	all := make([]status.Zone, 0, len(m.zones))
	due := m.due.Load()
	for _, z := range m.zones {
		s := z.zone.Status(m.Plugin)
		s.Source = z.ID
		if due != 0 {
			s.Refresh = time.Unix(0, due)
		}
		all = append(all, s)
	}
	return all
}
