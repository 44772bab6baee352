package validator

import (
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// domains is the turns of zones: those below one top-level domain share its turns. Who owns such a one has as many zones of
// two labels as he likes, and so has who is given one below a domain where each costs nothing.
type domains struct {
	waiting map[string]*turns[string] // by top-level domain
	order   []string                  // of these
	spare   *turns[string]            // without steps, so that one is at hand; may be nil
}

// zoneLabels is how many labels tell one zone with turns of its own from another: below such a one its owner makes as many
// as he likes.
const zoneLabels = 2

func (d *domains) add(name string, w *waiting) {
	top := rrset.Last(name, 1)
	zones := d.waiting[top]
	if zones == nil {
		if zones, d.spare = d.spare, nil; zones == nil {
			zones = &turns[string]{waiting: map[string][]*waiting{}}
		}
		d.waiting[top] = zones
		d.order = append(d.order, top)
	}
	zones.add(rrset.Last(name, zoneLabels), w)
}

// next is turns.next. There must be one.
func (d *domains) next() *waiting {
	for {
		top := d.order[0]
		d.order = d.order[1:]
		zones := d.waiting[top]
		w := zones.next()
		if len(zones.order) > 0 {
			d.order = append(d.order, top)
		} else {
			delete(d.waiting, top)
			zones.clear()
			d.spare = zones
		}
		if w != nil {
			return w
		}
	}
}

// longest is turns.longest.
func (d *domains) longest() (most []*waiting) {
	for _, zones := range d.waiting {
		if line := zones.longest(); len(line) > len(most) {
			most = line
		}
	}
	return most
}

// crowdOfDomain is how many steps a top-level domain has to have waiting so that it gives places to others. It is not few,
// as most of what is asked for may be of one such domain.
const crowdOfDomain = 8 * crowd

// oldest is the oldest step with a place that is wanted of the top-level domain that has a crowd, and more than half of all
// that wait; nil if none has.
func (d *domains) oldest(all int, wanted eventloop.Place) *waiting {
	for _, zones := range d.waiting {
		n, first := 0, (*waiting)(nil)
		for _, line := range zones.waiting {
			for _, w := range line {
				if w.compute == nil {
					continue
				}
				if n++; w.place&wanted != 0 && (first == nil || w.since.Before(first.since)) {
					first = w
				}
			}
		}
		if n >= crowdOfDomain && 2*n > all {
			return first
		}
	}
	return nil
}

// clear is turns.clear.
func (d *domains) clear() {
	for _, zones := range d.waiting {
		zones.clear()
		d.spare = zones
	}
	if len(d.waiting) > smallTurns {
		*d = domains{waiting: map[string]*turns[string]{}, spare: d.spare}
		return
	}
	clear(d.waiting)
	d.order = d.order[:0]
}
