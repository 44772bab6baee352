// Package hostaddrs tells the addresses of this machine's interfaces. Start at Recent, which is for who wants to know
// with each query; Now is for who asks once. Dial reaches addresses that have their meaning on one of them.
package hostaddrs

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// Now asks the system. IPv4 addresses have 4 octets; there is none if the system does not tell.
func Now() (all []netip.Addr) {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p.Addr().Unmap())
		}
	}
	return all
}

var recent = fresh[[]netip.Addr]{life: 5 * time.Second, make: Now}

// Recent is what Now told some seconds ago, or tells: it costs a query next to nothing. It is not to be changed.
func Recent() []netip.Addr { return recent.get() }

// fresh is a value that is made again when it has been used for a while.
type fresh[T any] struct {
	life  time.Duration
	make  func() T
	value atomic.Pointer[T]
	until atomic.Int64 // nanoseconds since started
}

// started is when the process did. The time since then goes on evenly when the clock is set.
var started = time.Now()

func (f *fresh[T]) get() T {
	now, until := int64(time.Since(started)), f.until.Load()
	if v := f.value.Load(); v != nil && (now < until || !f.until.CompareAndSwap(until, now+int64(f.life))) {
		return *v // another one makes it
	}
	v := f.make()
	f.until.Store(now + int64(f.life))
	f.value.Store(&v)
	return v
}
