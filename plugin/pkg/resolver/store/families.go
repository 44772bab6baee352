package store

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// A system may have an address of a family, and a route, and yet no datagram comes back, as a firewall drops it. Each
// new server would be waited for then, of every zone. So what is learnt of servers is learnt of families, too.

// silentServers is how many servers in a row have to be silent, which have never replied, for their family to be.
const silentServers = 8

// families is what is known of IPv4 and IPv6, in this order. Its methods may be called by any goroutine.
type families struct {
	of   [2]family
	tell func(six, silent bool) // is told of what changes; nil for nobody
}

type family struct {
	silent  atomic.Int32 // servers that never replied, since one did
	replied atomic.Bool  // one did
	told    atomic.Bool  // that it is silent
	nearest atomic.Int64 // about the least round trip time of late; 0 is unknown
}

// On the way to all servers there may be a satellite: then none replies sooner than that takes.

const (
	nearestSlows = 64 // which part of the difference a reply that takes longer makes
	mostUnknown  = maxWait / 2
)

// unknownWait is how long a reply of a server at a is waited for that has never replied.
func (f *families) unknownWait(a netip.Addr) time.Duration {
	nearest := time.Duration(f.of[indexOf(a)].nearest.Load())
	return max(unknownWait, min(nearest+nearest/2, mostUnknown))
}

// took notes the round trip time of a reply.
func (f *family) took(rtt time.Duration) {
	n := time.Duration(f.nearest.Load())
	if n == 0 || rtt < n {
		n = rtt
	}
	f.nearest.Store(int64(n + (rtt-n)/nearestSlows))
}

func indexOf(a netip.Addr) int {
	if a.Is6() {
		return 1
	}
	return 0
}

// reply notes that a server at a has replied.
func (f *families) reply(a netip.Addr, rtt time.Duration) {
	own := &f.of[indexOf(a)]
	own.took(rtt)
	if !own.replied.Load() {
		own.replied.Store(true)
	}
	if own.silent.Load() == 0 {
		return
	}
	own.silent.Store(0)
	if own.told.Swap(false) && f.tell != nil {
		f.tell(a.Is6(), false)
	}
}

// silence notes that a server at a is silent that has never replied.
func (f *families) silence(a netip.Addr) {
	own := &f.of[indexOf(a)]
	own.silent.Add(1)
	if f.silent(a) && !own.told.Swap(true) && f.tell != nil {
		f.tell(a.Is6(), true)
	}
}

// silent reports whether servers of a's family do not reply, while those of the other do.
func (f *families) silent(a netip.Addr) bool {
	i := indexOf(a)
	other := &f.of[1-i]
	return f.of[i].silent.Load() >= silentServers && other.replied.Load() && other.silent.Load() < silentServers
}

// inherit takes over what others know.
func (f *families) inherit(o *families) {
	for i := range f.of {
		f.of[i].silent.Store(o.of[i].silent.Load())
		f.of[i].replied.Store(o.of[i].replied.Load())
		f.of[i].told.Store(o.of[i].told.Load())
		f.of[i].nearest.Store(o.of[i].nearest.Load())
	}
}
