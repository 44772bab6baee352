package dnssec

import (
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	sweepEvery = 8 * time.Hour
	waiting    = 256 // sets that wait to be signed anew; more are left to those who ask for them
)

// keeper is the one goroutine that looks after the signatures of a server block: it drops the old ones, and makes anew
// what is still asked for, so that no client has to wait for it.
type keeper struct {
	sigs *signatures
	due  chan order
	stop chan struct{}
	done sync.WaitGroup
}

// order is a set that is to be signed again.
type order struct {
	set  []dns.RR
	zone string
}

// keep starts the keeper of sigs.
func keep(sigs *signatures) *keeper {
	k := &keeper{sigs: sigs, due: make(chan order, waiting), stop: make(chan struct{})}
	k.done.Add(1)
	go k.run()
	return k
}

// close ends the keeper and waits for it.
func (k *keeper) close() {
	close(k.stop)
	k.done.Wait()
}

func (k *keeper) run() {
	defer k.done.Done()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-k.stop:
			return
		case now := <-tick.C:
			k.sigs.sweep(now)
		case o := <-k.due:
			k.sigs.again(o, time.Now())
		}
	}
}

// renew has a set signed again some time soon. It is copied.
func (k *keeper) renew(set []dns.RR, zone string, ttl uint32) {
	if len(k.due) == cap(k.due) {
		return
	}
	o := order{zone: zone, set: make([]dns.RR, len(set))}
	for i, rr := range set {
		o.set[i] = dns.Copy(rr)
		o.set[i].Header().Ttl = ttl
	}
	select {
	case k.due <- o:
	default:
	}
}

// again signs a set anew, unless that was done since it was ordered.
func (s *signatures) again(o order, now time.Time) {
	m := s.buffers.Get().(*material)
	defer s.buffers.Put(m)
	if err := m.fill(o.set, o.zone); err != nil {
		s.complain(o.set, now, err)
		return
	}
	id := s.id(m)
	if entry, ok := s.cache.Get(id); ok && m.signedBy(entry, now, ageing) {
		return
	}
	if _, err := s.make(id, m, s.keys.signing(o.set[0].Header().Rrtype), o.set, o.zone, now); err != nil {
		s.complain(o.set, now, err)
	}
}

// sweep drops the signatures that are not given out any more.
func (s *signatures) sweep(now time.Time) {
	s.cache.Walk(func(shard map[uint64][]dns.RR, id uint64) bool {
		if !lasts(shard[id], now, retired) {
			delete(shard, id)
		}
		return true
	})
	if n := s.counts.Load(); n != nil {
		n.entries.Set(float64(s.cache.Len()))
	}
}
