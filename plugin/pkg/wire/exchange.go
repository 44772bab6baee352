package wire

import "github.com/coredns/coredns/plugin/pkg/eventloop"

// Await says what q waits for, before Park is returned. It is what the run after it finds in Awaited.
func (q *Query) Await(x eventloop.Exchange) { q.awaited, q.owns = x, false }

// AwaitOwn is Await for an exchange that was begun for q.
func (q *Query) AwaitOwn(x eventloop.OwnedExchange) { q.awaited, q.owns = x, true }

// SetCrowded says, for all that q is parsed from later, too, that it is not to be parked while crowded reports true.
// givesWay says that it may be dropped then, and while it is parked, too.
func (q *Query) SetCrowded(crowded func() bool, givesWay bool) {
	q.crowded, q.givesWay = crowded, givesWay
}

// Crowded reports whether q is not to be parked, for too many wait, and none of them has given way to it now. Who would
// begin an exchange for it returns Park without that, having awaited nothing: else there were no bound to what is begun
// for nobody. Over UDP q is dropped then, elsewhere the chain runs again when there is room.
func (q *Query) Crowded() bool { return q.crowded != nil && q.crowded() }

// GivesWay reports whether q may be dropped while it is parked, for one that has just come. Who does so ends what q
// waits for. When the chain runs again, the plugin that had it wait calls Await(nil), and returns Park.
func (q *Query) GivesWay() bool { return q.givesWay }

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
