package etcd

import (
	"context"
	"math"
	"sync"
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
	return e.ttl(context.Background(), kv, serv)
}

func (e *Etcd) ttl(ctx context.Context, kv *mvccpb.KeyValue, s *msg.Service) uint32 {
	lease := uint32(0)
	if kv.Lease != 0 {
		patience := requestTime
		if e.view != nil { // which answers without etcd
			patience = leaseTime
		}
		lease = e.bounded(e.leases.left(ctx, e.client(), etcdcv3.LeaseID(kv.Lease), patience))
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
	leaseKnown = 10 * time.Second       // how long what is known of a lease is good: it may be kept alive meanwhile
	leaseTime  = 200 * time.Millisecond // for what is left of a lease, where the rest of the answer is there already
	maxLeases  = 100000
)

// left is the seconds that are left of a lease, 0 if that cannot be known. It waits for etcd as long as patience lasts;
// without an answer what was known before is good, and nobody waits again for a while.
func (l *leases) left(ctx context.Context, client *etcdcv3.Client, id etcdcv3.LeaseID, patience time.Duration) int64 {
	now := time.Now()
	known, ask := l.recall(id, now)
	if !ask || client == nil {
		return known
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := first(asking, client, func(ctx context.Context) (*etcdcv3.LeaseTimeToLiveResponse, error) { return client.TimeToLive(ctx, id) })
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		if ctx.Err() == nil {
			l.quiet = time.Now().Add(leaseKnown)
		}
		return known
	case r.TTL <= 0:
		return 0
	}
	if l.all == nil || len(l.all) >= maxLeases {
		l.all = map[etcdcv3.LeaseID]leaseEnd{}
	}
	l.all[id] = leaseEnd{end: now.Add(time.Duration(r.TTL) * time.Second), asked: now}
	return r.TTL
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
