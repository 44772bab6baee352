package wire

import "github.com/coredns/coredns/plugin/pkg/eventloop"

// Await says what q waits for, before Park is returned. It is what the run after it finds in Awaited.
func (q *Query) Await(x eventloop.Exchange) { q.awaited, q.owns = x, false }

// AwaitOwn is Await for an exchange that was begun for q.
func (q *Query) AwaitOwn(x eventloop.OwnedExchange) { q.awaited, q.owns = x, true }

// SetCrowded says, for all that q is parsed from later, too, that it is not to be parked while crowded reports true.
// givesWay are the places that q has while it is parked, and may lose to others; 0: it keeps them.
func (q *Query) SetCrowded(crowded func() bool, givesWay eventloop.Place) {
	q.crowded, q.givesWay = crowded, givesWay
}

// Crowded reports whether q is not to be parked, for too many wait, and none of them has given way to it now. Who would
// begin an exchange for it returns Park without that, having awaited nothing: else there were no bound to what is begun
// for nobody. Over UDP q is dropped then, elsewhere the chain runs again when there is room.
func (q *Query) Crowded() bool { return q.crowded != nil && q.crowded() }

// GivesWay are the places that q has while it is parked, and that may be had for a query that has just come, by ending
// what q waits for; 0: q keeps them. When the chain runs again, the plugin that had it wait calls Await(nil) over UDP,
// and returns Park, so that q is dropped; elsewhere it fails.
func (q *Query) GivesWay() eventloop.Place { return q.givesWay }

// Wait makes r wait, in the place of q, for what q waits for.
func (q *Query) Wait(r eventloop.Resumer) {
	if own, ok := q.awaited.(eventloop.OwnedExchange); ok && q.owns {
		own.ThenOwner(r)
		return
	}
	q.awaited.Then(r)
}

// JustCame reports whether q is served as it came, in a loop and without having waited: then it is still the time
// that Arrival says.
func (q *Query) JustCame() bool { return q.loop != nil && q.awaited == nil && !q.Arrival.IsZero() }

// Awaited is the exchange that q was parked on and that has ended, nil on a first run. Before a plugin waits for
// another one, it calls Await again.
func (q *Query) Awaited() eventloop.Exchange { return q.awaited }
