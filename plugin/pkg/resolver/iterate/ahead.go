package iterate

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// This file is what is fetched before it is asked for: the keys of a signed zone, while one of its servers is asked
// for what a client wants. A validator needs both, and would ask for the keys when the other has come: that costs a
// round trip.
//
// Such a fetch is a Run of its own, so what a client's question may cost does not bound it. It is bounded by itself: a
// hostile zone gains a few queries.

const (
	aheadQueries = 2 // of one such Run: over UDP, and once more or over TCP
	aheadZones   = 4 // whose keys are fetched so, for a client's question
)

// Ahead has a Run fetch something that is not asked for yet: it sends two queries at most, and nobody is told of a
// failure. It belongs before the first Step.
func (r *Run) Ahead() { r.ahead = true }

// keysAhead has the keys of a signed zone fetched that a client's question has come to.
func (t *task) keysAhead(d *store.Delegation) {
	r, q := t.run, Question{d.Zone, rrset.TypeDNSKEY}
	if d.DS == nil || r.conf.Ahead == nil || t.depth > 0 || r.ahead || r.aheads >= aheadZones || t.q == q ||
		r.conf.Stores.RRsets.Get(q.Name, q.Type, r.now) != nil {
		return
	}
	r.aheads++
	r.conf.Ahead(q)
}
