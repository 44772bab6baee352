package file

import (
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/zone"
)

// leading counts the zones of a File that have an alias to a target outside.
type leading struct{ n atomic.Int32 }

// newLeading counts zones from now on, whatever becomes of them.
func newLeading(zones map[string]*Zone) *leading {
	l := new(leading)
	count := func(v *zone.Zone, by int32) {
		if v != nil && v.LeadsOut() {
			l.n.Add(by)
		}
	}
	for _, z := range zones {
		if z == nil {
			continue
		}
		count(z.store.Load(), 1)
		z.store.OnReplace(func(old, now *zone.Zone) {
			count(now, 1)
			count(old, -1)
		})
	}
	return l
}

func (l *leading) none() bool { return l.n.Load() == 0 }
