package file

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/status"
)

// Looked says how the last look at where the zone comes from ended, for Status: with err, or nil if all is well. A zone
// with a file says it itself.
func (z *Zone) Looked(err error) { z.failure.Note(err) }

// Status is what there is to tell of the zone; name is that of the plugin that serves it.
func (z *Zone) Status(name string) status.Zone {
	v, expired := z.version()
	s := status.Zone{Name: z.origin, Plugin: name, Source: z.File(), Loaded: v != nil, Expired: expired, Since: z.store.Since()}
	if v != nil {
		s.Serial, s.Records = v.Serial(), v.Records()
	}
	z.failure.Show(&s)
	z.RLock()
	every := z.ReloadInterval
	z.RUnlock()
	if every > 0 && !s.Since.IsZero() { // files are looked at once each interval
		s.Refresh = s.Since.Add((time.Since(s.Since)/every + 1) * every)
	}
	return s
}

// ZoneStatus implements status.Zones.
func (f File) ZoneStatus() []status.Zone {
	all := make([]status.Zone, 0, len(f.Zones.Z))
	for _, z := range f.Zones.Z {
		all = append(all, z.Status("file"))
	}
	return all
}
