package auto

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/transfer"
)

// Zones is the zones that were found. Z must not be touched while there are changes; its methods may be called at any time.
type Zones struct {
	Z map[string]*file.Zone // by name, fully qualified and in lower case

	origins []string            // below which queries are answered; not changed any more
	under   wire.Suffixes[bool] // the same

	mu    sync.RWMutex // of Z
	index atomic.Pointer[file.Index]
}

// newZones is Zones for queries below some origins.
func newZones(origins []string) *Zones {
	z := &Zones{Z: map[string]*file.Zone{}, origins: origins}
	for _, o := range origins {
		if name, err := wire.LowerName(o); err == nil {
			z.under.Set(name, true)
		}
	}
	return z
}

// Names is the names of all zones, in order.
func (z *Zones) Names() []string {
	z.mu.RLock()
	defer z.mu.RUnlock()
	names := make([]string, 0, len(z.Z))
	for name := range z.Z {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Origins is the names below which queries are answered.
func (z *Zones) Origins() []string { return slices.Clone(z.origins) }

// Zones is the zone of exactly that name, nil if there is none.
func (z *Zones) Zones(name string) *file.Zone {
	z.mu.RLock()
	defer z.mu.RUnlock()
	return z.Z[name]
}

// Add adds a zone, or puts it in the place of that of the same name, and has its file looked at from now on as its
// ReloadInterval says. t, which may be nil, is told of changes.
func (z *Zones) Add(zone *file.Zone, name string, t *transfer.Transfer) {
	z.put(map[string]*file.Zone{name: zone})
	if err := zone.Reload(t); err != nil {
		alog.Warningf("Zone %s: %v", name, err)
	}
}

// Remove takes a zone away; its file is not looked at any more.
func (z *Zones) Remove(name string) {
	zone := z.Zones(name)
	if zone == nil {
		return
	}
	z.put(map[string]*file.Zone{name: nil})
	if err := zone.OnShutdown(); err != nil {
		alog.Warningf("Zone %s: %v", name, err)
	}
}

// put adds zones, takes those away that are nil, and lets queries see all of it at once.
func (z *Zones) put(changes map[string]*file.Zone) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.Z == nil {
		z.Z = map[string]*file.Zone{}
	}
	for name, zone := range changes {
		if zone == nil {
			delete(z.Z, name)
		} else {
			z.Z[name] = zone
		}
	}
	z.index.Store(file.NewIndex(z.Z))
}

// find is the zone that a query is for.
func (z *Zones) find(q *wire.Query) (found *file.Zone, known bool) {
	index := z.index.Load()
	if index == nil {
		return nil, false
	}
	if _, ok := z.under.Longest(q.Lower()); !ok {
		return nil, false
	}
	return index.Find(q)
}
