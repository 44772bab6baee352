package zone

import "weak"

// Who is told of a new version compares it with the one before, which takes long for a large zone. A version that was
// made by a Change knows what it was made of, and what changed since.

// lineage is where a version of a growing zone comes from. It holds no other version: who made it may be gone.
type lineage struct {
	parent weak.Pointer[Zone] // the version that it was made of
	twin   weak.Pointer[Zone] // the zone that the parent is the same as, if Growing made it
	delta  *Delta             // what changed since, nil if nothing did
}

// since is what changed from old to z, if z was made of it by one Change.
func (z *Zone) since(old *Zone) (*Delta, bool) {
	if z.grown == nil || z.grown.lineage.delta == nil {
		return nil, false
	}
	l, w := &z.grown.lineage, weak.Make(old)
	return l.delta, l.parent == w || l.twin == w
}

// shares reports whether z has all but a little of old, and old has nothing large for itself.
func (z *Zone) shares(old *Zone) bool {
	return z != nil && old != nil && z.grown != nil && z.grown.lineage.delta != nil && z.grown.lineage.parent == weak.Make(old)
}
