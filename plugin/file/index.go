package file

import (
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Index finds the zone for a query in time that does not depend on the number of zones. One that is not changed any more
// may be read by any number of goroutines.
type Index struct{ zones wire.Suffixes[*Zone] }

// NewIndex is an Index of zones by their names, fully qualified and in lower case. What is no name is left out.
func NewIndex(zones map[string]*Zone) *Index {
	x := new(Index)
	for name, z := range zones {
		if n, err := wire.LowerName(name); err == nil {
			x.zones.Set(n, z)
		}
	}
	return x
}

// Find is the zone of the longest name that the query's name is or lies below. A DS query for a zone's own name belongs to
// the zone above, if that is here, too (RFC 4035 §3.1.4.1).
func (x *Index) Find(q *wire.Query) (z *Zone, known bool) {
	var way wire.Climb[*Zone]
	way.Start(&x.zones, q.Lower())
	z, before, known := way.Next()
	if known && before == 0 && q.Type() == dns.TypeDS {
		if parent, _, ok := way.Next(); ok {
			return parent, true
		}
	}
	return z, known
}
