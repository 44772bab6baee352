package secondary

import (
	"context"
	"slices"
	"sync"
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

	transfers, checks chan struct{}

	listens <-chan struct{} // closed when the configuration serves; nil if it does so already

	// filing is held while a file takes the place of another one, and while one is removed: what a replica that is gone
	// was writing must not take the place of what the next one of its name has stored, nor be left behind.
	filing sync.Mutex

	mu     sync.Mutex
	until  map[string]time.Time     // a primary is left alone
	last   map[string]time.Time     // a primary answered
	unsaid map[string][]string      // the zones that a primary did not answer for since, as long as they are few
	shares map[string]chan struct{} // of the transfers, by primary
}

func newRooms() *rooms {
	return &rooms{
		transfers: make(chan struct{}, maxTransfers), checks: make(chan struct{}, maxChecks),
		until: map[string]time.Time{}, last: map[string]time.Time{}, unsaid: map[string][]string{}, shares: map[string]chan struct{}{},
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

// enter waits for room. Who got it calls leave.
func enter(ctx context.Context, room chan struct{}) (leave func(), err error) {
	select {
	case room <- struct{}{}:
		return func() { <-room }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// enterTransfer waits for room for a transfer from a primary. Who waits for the primary's share takes no other's room.
func (r *rooms) enterTransfer(ctx context.Context, primary string) (leave func(), err error) {
	r.mu.Lock()
	share := r.shares[primary]
	if share == nil {
		share = make(chan struct{}, maxShare)
		r.shares[primary] = share
	}
	r.mu.Unlock()
	leaveShare, err := enter(ctx, share)
	if err != nil {
		return nil, err
	}
	leaveAll, err := enter(ctx, r.transfers)
	if err != nil {
		leaveShare()
		return nil, err
	}
	return func() {
		leaveAll()
		leaveShare()
	}, nil
}

// heard notes that a primary answered, or notified us: it is there.
func (r *rooms) heard(primary string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[primary] = now
	delete(r.until, primary)
	delete(r.unsaid, primary)
}

// unreachable notes that a primary took no connection in time.
func (r *rooms) unreachable(primary string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until[primary] = now.Add(silence)
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
