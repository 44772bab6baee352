package secondary

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/status"
)

// times is when a replica does what it does next, for those who ask. Who begins it writes it, and then its goroutine.
type times struct{ refresh, expires atomic.Int64 } // Unix nanoseconds, 0 if unknown

// set notes both; the zero Time is unknown.
func (t *times) set(refresh, expires time.Time) {
	t.refresh.Store(refresh.UnixNano())
	if expires.IsZero() {
		t.expires.Store(0)
		return
	}
	t.expires.Store(expires.UnixNano())
}

func timeOf(n *atomic.Int64) (t time.Time) {
	if v := n.Load(); v != 0 {
		t = time.Unix(0, v)
	}
	return t
}

// ZoneStatus implements status.Zones.
func (s Secondary) ZoneStatus() []status.Zone {
	s.roster.mu.RLock()
	defer s.roster.mu.RUnlock()
	all := make([]status.Zone, 0, len(s.roster.replicas))
	for _, r := range s.roster.replicas {
		z := r.zone.Status("secondary")
		z.Source = strings.Join(r.source.primaries, " ")
		z.Refresh, z.Expires = r.rooms.shown(timeOf(&r.times.refresh)), r.rooms.shown(timeOf(&r.times.expires))
		all = append(all, z)
	}
	return all
}

// TransferStatus implements status.Transfers.
func (s Secondary) TransferStatus() []status.Transfer { return s.roster.rooms.got.List() }
