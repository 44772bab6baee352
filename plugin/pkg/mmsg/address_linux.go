package mmsg

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AddrPort is a socket address as the kernel writes it, with its zone if it has one: name has room for the longest.
func AddrPort(name *unix.RawSockaddrInet6) netip.AddrPort {
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&name.Port))[:])
	if name.Family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(name)).Addr), port)
	}
	a := netip.AddrFrom16(name.Addr)
	if name.Scope_id != 0 {
		a = a.WithZone(zoneOf(name.Scope_id))
	}
	return netip.AddrPortFrom(a, port)
}

// zone is the name of an interface, by which link-local addresses are told apart, until it is to be looked up again.
type zone struct {
	index uint32
	name  string
	until time.Time
}

// zoneTime is how long a name holds: interfaces are seldom renamed. To look one up has the kernel list all interfaces,
// which takes fifty times as long as a query.
const zoneTime = time.Minute

// zones are those that were looked up last, each in the one place that it can have.
var zones [64]atomic.Pointer[zone]

// zoneOf is the name of an interface, or its number if it has none.
func zoneOf(index uint32) string {
	place, now := &zones[index%uint32(len(zones))], time.Now()
	if z := place.Load(); z != nil && z.index == index && now.Before(z.until) {
		return z.name
	}
	z := &zone{index, fmt.Sprint(index), now.Add(zoneTime)}
	if i, err := net.InterfaceByIndex(int(index)); err == nil {
		z.name = i.Name
	}
	place.Store(z)
	return z.name
}
