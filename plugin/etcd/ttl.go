package etcd

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/etcd/msg"

	"go.etcd.io/etcd/api/v3/mvccpb"
	etcdcv3 "go.etcd.io/etcd/client/v3"
)

// Default bounds of TTLs that leases make, in seconds.
const (
	defaultMinLease = 30
	defaultMaxLease = 24 * 60 * 60
)

// TTL returns the TTL, in seconds, of the records that serv makes: its own, or what is left of the lease of kv, within bounds,
// whichever is less; without both, 300.
func (e *Etcd) TTL(kv *mvccpb.KeyValue, serv *msg.Service) uint32 {
	if kv.Lease == 0 {
		return e.ttl(0, serv)
	}
	ctx := context.Background()
	e.leases.ask(ctx, e.client(), []etcdcv3.LeaseID{etcdcv3.LeaseID(kv.Lease)}, time.Now().Add(e.leasePatience()))
	return e.ttl(kv.Lease, serv)
}

// leasePatience is how long an answer waits for what is left of its leases.
func (e *Etcd) leasePatience() time.Duration {
	if e.view != nil { // which answers without etcd
		return leaseTime
	}
	return requestTime
}

// ttl is TTL, by what is known of a lease.
func (e *Etcd) ttl(id int64, s *msg.Service) uint32 {
	lease := uint32(0)
	if id != 0 {
		seconds, _ := e.leases.recall(etcdcv3.LeaseID(id), time.Now())
		lease = e.bounded(seconds)
	}
	switch {
	case lease == 0 && s.TTL == 0:
		return defaultTTL
	case lease == 0:
		return s.TTL
	case s.TTL == 0:
		return lease
	}
	return min(lease, s.TTL)
}

// bounded is seconds of a lease within the bounds. 0, for a lease that is not known, stays.
func (e *Etcd) bounded(seconds int64) uint32 {
	if seconds <= 0 {
		return 0
	}
	least, most := e.MinLeaseTTL, e.MaxLeaseTTL
	if least == 0 {
		least = defaultMinLease
	}
	if most == 0 {
		most = defaultMaxLease
	}
	return min(max(uint32(min(seconds, math.MaxUint32)), least), most)
}

// leases remembers when leases end, so that not every answer asks.
type leases struct {
	mu    sync.Mutex
	all   map[etcdcv3.LeaseID]leaseEnd
	quiet time.Time // until then etcd is not asked: it has not told
}

// leaseEnd is when a lease ends, as was known at a time.
type leaseEnd struct{ end, asked time.Time }

const (
	leaseKnown  = 10 * time.Second       // how long what is known of a lease is good: it may be kept alive meanwhile
	leaseTime   = 200 * time.Millisecond // for what is left of leases, where the rest of the answer is there already
	leaseAskers = 16                     // that ask for leases of one answer at one time
	maxLeases   = 100000

	// maxAnswerLeases is of how many leases those who ask for one name have to know: more records than that no message has.
	maxAnswerLeases = 5000
)

// ask asks for leases of which enough is not known. It waits for etcd until a time; if that tells nothing, what was known
// before is good, and nobody waits again for a while.
func (l *leases) ask(ctx context.Context, client *etcdcv3.Client, ids []etcdcv3.LeaseID, until time.Time) {
	now := time.Now()
	ids = slices.DeleteFunc(ids, func(id etcdcv3.LeaseID) bool {
		_, ask := l.recall(id, now)
		return !ask
	})
	if len(ids) == 0 || client == nil {
		return
	}
	l.sort(ids)
	ids = ids[:min(len(ids), maxAnswerLeases)]
	asking, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var next, told atomic.Int64
	var askers sync.WaitGroup
	for range min(leaseAskers, len(ids)) {
		askers.Go(func() {
			for asking.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(ids) {
					return
				}
				if l.askOne(asking, client, ids[i]) != nil {
					return
				}
				told.Add(1)
			}
		})
	}
	askers.Wait()
	if told.Load() == 0 && ctx.Err() == nil {
		l.mu.Lock()
		l.quiet = time.Now().Add(leaseKnown)
		l.mu.Unlock()
	}
}

// sort puts those before others of which nothing is known, or for the longest time: there may be no time for all.
func (l *leases) sort(ids []etcdcv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(ids, func(a, b etcdcv3.LeaseID) int { return l.all[a].asked.Compare(l.all[b].asked) })
}

// askOne asks for one lease, and remembers what is left of it.
func (l *leases) askOne(ctx context.Context, client *etcdcv3.Client, id etcdcv3.LeaseID) error {
	now := time.Now()
	r, err := first(ctx, client, func(ctx context.Context) (*etcdcv3.LeaseTimeToLiveResponse, error) { return client.TimeToLive(ctx, id) })
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.TTL <= 0 {
		delete(l.all, id)
		return nil
	}
	if len(l.all) >= maxLeases {
		maps.DeleteFunc(l.all, func(_ etcdcv3.LeaseID, known leaseEnd) bool { return now.Sub(known.asked) >= leaseKnown })
	}
	if l.all == nil || len(l.all) >= maxLeases {
		l.all = map[etcdcv3.LeaseID]leaseEnd{}
	}
	l.all[id] = leaseEnd{end: now.Add(time.Duration(r.TTL) * time.Second), asked: now}
	return nil
}

// recall is the seconds that are left of a lease as far as is known, at least one of a lease that is, and whether to ask.
func (l *leases) recall(id etcdcv3.LeaseID, now time.Time) (seconds int64, ask bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ask = !now.Before(l.quiet)
	known, ok := l.all[id]
	if !ok {
		return 0, ask
	}
	fresh := now.Sub(known.asked) < leaseKnown && now.Before(known.end)
	return max(1, int64(math.Ceil(known.end.Sub(now).Seconds()))), ask && !fresh
}
