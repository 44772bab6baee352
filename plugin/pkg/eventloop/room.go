package eventloop

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
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

// Giver finds what has waited longest, of some that may be given up for others, have a place that is wanted, and have
// waited for long. end is nil if there is none. It ends that, and reports whether it was still there; it may be called
// where an exchange may be ended.
type Giver func(wanted Place) (since time.Time, end func() bool)

var (
	giversMu sync.Mutex // writers of givers
	givers   atomic.Pointer[[]Giver]
)

// OnCrowd has MakeRoom ask f, too, for ever.
func OnCrowd(f Giver) {
	giversMu.Lock()
	defer giversMu.Unlock()
	all := append(slices.Clone(allGivers()), f)
	givers.Store(&all)
}

func allGivers() []Giver {
	if all := givers.Load(); all != nil {
		return *all
	}
	return nil
}

// MakeRoom ends what has waited longest of all, so that it gives its place, of a kind that is wanted, to something that
// has just come. It reports whether there was one. It may be called where an exchange may be ended.
func MakeRoom(wanted Place) bool {
	for range 2 { // who is chosen may have come to its own end
		var oldest time.Time
		var end func() bool
		for _, f := range allGivers() {
			if since, ends := f(wanted); ends != nil && (end == nil || since.Before(oldest)) {
				oldest, end = since, ends
			}
		}
		if end == nil {
			return false
		}
		if end() {
			return true
		}
	}
	return false
}

var allAtWork atomic.Pointer[func() bool]

// SetAllAtWork has AllAtWork ask f, and returns what it has asked until now.
func SetAllAtWork(f func() bool) (before func() bool) {
	if old := allAtWork.Swap(&f); old != nil {
		before = *old
	}
	return before
}

// AllAtWork reports whether a query that leaves its loop for the message lane has no place there: as many are at work
// as may be, and none of them has given way to it now. It waits then, or is dropped.
func AllAtWork() bool {
	f := allAtWork.Load()
	return f != nil && *f != nil && (*f)()
}
