package transfer

import (
	"github.com/coredns/coredns/plugin/pkg/zone"
)

const (
	// journalVersions is how many versions back a client may be to get what changed only.
	journalVersions = 16
	// journalSize is up to which octets a journal is kept, if the zone is not larger.
	journalSize = 64 << 10
	// condenseSize is up to which octets what changed is made one delta; beyond it the work is not worth it.
	condenseSize = 1 << 20
)

// Changed tells that a zone is another now, so that clients get what changed, and are notified; that takes place later. old
// is nil for the first version, which may be there before the server starts, now if there is none any more. It compares both
// versions, after a reload the first one with the last one before, which takes about 0.2 s for a million records. It is made to
// be called by zone.Live's OnReplace. A nil Transfer does nothing.
func (t *Transfer) Changed(name string, old, now *zone.Zone) {
	if t == nil || t.stanzaOf(name) == nil {
		return
	}
	t.record(name, old, now)
	if now != nil {
		t.NotifyLater(name)
	}
}

// record keeps what changed. Zones that a client cannot follow, as too much changed, begin anew.
func (t *Transfer) record(name string, old, now *zone.Zone) {
	var journal zone.Journal
	known := old != nil
	if !known && now != nil {
		var before legacy
		before, known = t.legacyOf(name)
		old, journal = before.version, before.journal
	}
	var delta *zone.Delta
	ok, limit := false, journalSize
	if now != nil {
		limit = max(limit, now.Size())
	}
	if known && now != nil {
		delta, ok = zone.Diff(old, now, limit)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now == nil {
		delete(t.versions, name)
	} else {
		put(&t.versions, name, now)
	}
	j := t.journals[name]
	if j == nil {
		j = &journal
	}
	if known && now != nil {
		doubt(j, old.Serial(), now.Serial())
	}
	switch {
	case now == nil || !known:
		j = new(zone.Journal)
	case !ok:
		j.Restart()
	case !delta.Idle():
		j.Add(delta, journalVersions, limit)
	}
	if known && now != nil && old.Serial() == now.Serial() && (!ok || !delta.Idle()) {
		j.Doubt(now.Serial()) // some clients may have the version before
	}
	if j.Empty() {
		delete(t.journals, name)
	} else {
		put(&t.journals, name, j)
	}
}

// doubt notes serials that will be those of other versions, too, if a zone's serial goes back: clients stay with the
// versions that they have until its serial is newer than theirs.
func doubt(j *zone.Journal, old, now uint32) {
	if !zone.Newer(old, now) {
		return
	}
	for _, d := range j.All() {
		if zone.Newer(d.From, now) {
			j.Doubt(d.From)
		}
	}
	j.Doubt(old)
}

// put is m[k] = v, if m is nil, too.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// deltas is the way from the version that a client has to v, nil if it is not known.
func (t *Transfer) deltas(o *out, from Source, v *zone.Zone) []*zone.Delta {
	if h, ok := from.(Historian); ok {
		return h.Since(o.name, *o.serial, v)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.journals[o.name]; j != nil {
		return j.Since(*o.serial, v.Serial())
	}
	return nil
}

// since is what changed from the version that a client has to v, nil if that is not known, or more than v itself.
func (t *Transfer) since(o *out, from Source, v *zone.Zone) []*zone.Delta {
	if o.serial == nil {
		return nil
	}
	deltas := t.deltas(o, from, v)
	size := 0
	for _, d := range deltas {
		size += d.Size()
	}
	if len(deltas) > 1 && size <= condenseSize {
		deltas = []*zone.Delta{zone.Condense(deltas)}
		size = deltas[0].Size()
	}
	if size > v.Size() {
		return nil
	}
	return deltas
}
