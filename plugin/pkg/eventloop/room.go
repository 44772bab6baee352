package eventloop

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Place is a kind of place of which the process has a bound; places of several kinds are their sum.
type Place uint8

// A query that waits has a place of one of these kinds, or of both.
const (
	Parked Place = 1 << iota // among those that are parked on an exchange
	AtWork                   // among the goroutines that may wait

	allPlaces = Parked | AtWork
)

// Kinds is how many sums of kinds there are, none among them.
const Kinds = int(allPlaces) + 1

// PlaceKey is the key of a context that holds a Place: see PlaceOf.
type PlaceKey struct{}

// PlaceOf is the place that the query of ctx has until it is answered, asked on the query's own goroutine: 0 if it has
// none, or what ctx is for goes on elsewhere.
func PlaceOf(ctx context.Context) Place {
	p, _ := ctx.Value(PlaceKey{}).(Place)
	return p
}

var (
	roomMu     sync.Mutex                         // writers of roomMakers
	roomMakers atomic.Pointer[[]func(Place) bool] // see OnCrowd
)

// OnCrowd has MakeRoom call f, for ever. f ends an exchange that has been under way for long, of those that may be
// given up for others and have a place that is wanted, and reports whether there was one.
func OnCrowd(f func(wanted Place) bool) {
	roomMu.Lock()
	defer roomMu.Unlock()
	var all []func(Place) bool
	if old := roomMakers.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = append(all, f)
	roomMakers.Store(&all)
}

// MakeRoom ends an exchange, so that what waits for it gives its place, of a kind that is wanted, to something that has
// just come. It reports whether there was one. It may be called where an exchange may be ended.
func MakeRoom(wanted Place) bool {
	all := roomMakers.Load()
	return all != nil && slices.ContainsFunc(*all, func(f func(Place) bool) bool { return f(wanted) })
}
