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
		lease = e.bounded(e.leases.left(ctx, e.client(), etcdcv3.LeaseID(kv.Lease), time.Now()))
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
	mu  sync.Mutex
	all map[etcdcv3.LeaseID]leaseEnd
}

// leaseEnd is when a lease ends, as was known at a time.
type leaseEnd struct{ end, asked time.Time }

const (
	leaseKnown = 10 * time.Second // how long what is known of a lease is good: it may be kept alive meanwhile
	maxLeases  = 100000
)

// left is the seconds that are left of a lease, 0 if that cannot be known.
func (l *leases) left(ctx context.Context, client *etcdcv3.Client, id etcdcv3.LeaseID, now time.Time) int64 {
	l.mu.Lock()
	known, ok := l.all[id]
	l.mu.Unlock()
	if ok && now.Sub(known.asked) < leaseKnown && now.Before(known.end) {
		return int64(math.Ceil(known.end.Sub(now).Seconds()))
	}
	if client == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	r, err := client.TimeToLive(ctx, id)
	if err != nil || r.TTL <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil || len(l.all) >= maxLeases {
		l.all = map[etcdcv3.LeaseID]leaseEnd{}
	}
	l.all[id] = leaseEnd{end: now.Add(time.Duration(r.TTL) * time.Second), asked: now}
	return r.TTL
}
