package secondary

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/status"
)

const (
	maxTransfers = 8                // zones that are fetched at once
	maxShare     = 6                // of these from one primary: one that drags on leaves room for others
	maxChecks    = 64               // primaries that are asked for a serial at once
	silence      = 10 * time.Second // how long a primary that did not answer is left alone
	silentTo     = 4                // zones that it did not answer for: some do not for one that they do not have
)

// rooms bounds what all replicas do at once, and tells them of primaries that do not answer, so that thousands of zones
// do not wait for the same one, each for itself.
type rooms struct {
	got status.TransferLog // what came from primaries of late

	now        func() time.Time // by which zones grow old
	watchEvery time.Duration
	spread     time.Duration
	awakening  time.Duration

	transfers, checks *room

	listens <-chan struct{} // closed when the configuration serves; nil if it does so already

	mu       sync.Mutex
	leapt    chan struct{}        // see leap
	until    map[string]time.Time // a primary is left alone
	last     map[string]time.Time // a primary answered
	believed map[string]time.Time // a notification of a primary counted that was left alone
	unsaid   map[string][]string  // the zones that a primary did not answer for since, as long as they are few
	shares   map[string]*room     // of the transfers, by primary
}

func newRooms() *rooms {
	return &rooms{
		now: steadyNow, watchEvery: watchEvery, spread: spread, awakening: awakening, leapt: make(chan struct{}),
		transfers: newRoom(maxTransfers), checks: newRoom(maxChecks),
		until: map[string]time.Time{}, last: map[string]time.Time{}, believed: map[string]time.Time{},
		unsaid: map[string][]string{}, shares: map[string]*room{},
	}
}

// serves reports whether the configuration serves.
func (r *rooms) serves() bool {
	if r.listens == nil {
		return true
	}
	select {
	case <-r.listens:
		return true
	default:
		return false
	}
}

// room is for as many as its places are.
type room struct {
	places  chan struct{}
	waiting atomic.Int32 // who wait for a place
}

func newRoom(places int) *room { return &room{places: make(chan struct{}, places)} }

// enter waits for a place. Who got one calls leave.
func (r *room) enter(ctx context.Context) (leave func(), err error) {
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	select {
	case r.places <- struct{}{}:
		return func() { <-r.places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// enterTransfer waits for room for a transfer from a primary. Who waits for the primary's share takes no other's room.
// wanted reports from then on whether somebody waits for the place: then a transfer that drips gives way, or a few of
// them would keep it from all others as long as a transfer may take.
func (r *rooms) enterTransfer(ctx context.Context, primary string) (leave func(), wanted func() bool, err error) {
	r.mu.Lock()
	share := r.shares[primary]
	if share == nil {
		share = newRoom(maxShare)
		r.shares[primary] = share
	}
	r.mu.Unlock()
	leaveShare, err := share.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	leaveAll, err := r.transfers.enter(ctx)
	if err != nil {
		leaveShare()
		return nil, nil, err
	}
	leave = func() {
		leaveAll()
		leaveShare()
	}
	return leave, func() bool { return share.waiting.Load()+r.transfers.waiting.Load() > 0 }, nil
}

// notified notes that a primary notified us: it is asked though it did not answer a moment ago. If it does not answer
// then either, that was forged perhaps, and further ones count after a while only: zones of others would wait for
// room.
func (r *rooms) notified(primary string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.until[primary]) && now.Sub(r.believed[primary]) >= silence {
		r.believed[primary] = now
		delete(r.until, primary)
	}
}

// heard notes that a primary answered: it is there.
func (r *rooms) heard(primary string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[primary] = now
	delete(r.until, primary)
	delete(r.unsaid, primary)
}

// unreachable notes that a primary took no connection in time, unless it answered meanwhile.
func (r *rooms) unreachable(primary string, sent, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last[primary].After(sent) {
		r.until[primary] = now.Add(silence)
	}
}

// silent notes that a primary did not answer a query for a zone. It is left alone when it did so for several zones, and
// answered none meanwhile.
func (r *rooms) silent(primary, zone string, sent, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last[primary].After(sent) {
		return
	}
	zones := r.unsaid[primary]
	if !slices.Contains(zones, zone) {
		zones = append(zones, zone)
	}
	if r.unsaid[primary] = zones; len(zones) >= silentTo {
		r.until[primary] = now.Add(silence)
		delete(r.unsaid, primary)
	}
}

func (r *rooms) isSilent(primary string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.until[primary])
}
