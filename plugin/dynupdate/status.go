package dynupdate

import "github.com/coredns/coredns/plugin/pkg/status"

// ZoneStatus implements status.Zones.
func (d *DynUpdate) ZoneStatus() []status.Zone {
	if d.store == nil {
		return nil
	}
	s := d.store.served.Status(pluginName)
	if s.Source = d.database; s.Source == "" {
		s.Source = d.file
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	s.Frozen = d.store.frozen
	return []status.Zone{s}
}

// FreezeZone implements status.Freezer.
func (d *DynUpdate) FreezeZone(name string, on bool) bool {
	if name != d.Zone || d.store == nil {
		return false
	}
	d.Freeze(on)
	return true
}
