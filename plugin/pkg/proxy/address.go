package proxy

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// address is where an upstream is: what sockets are opened to. Sockets that are open stay with the address that they
// were opened to.
type address struct {
	hostPort string
	name     bool // not an address: it is looked up, now and then

	known atomic.Pointer[netip.AddrPort] // nil before a name was found

	mu    sync.Mutex
	err   error     // of the last look-up
	until time.Time // no new one before
}

// A name is looked up again with a socket that is opened after that time: it may be found elsewhere by then, or be
// found at all.
const (
	foundFor    = 5 * time.Second
	notFoundFor = time.Second
)

// lookUp is how a name is looked up. Tests change it.
var lookUp = func(hostPort string) (netip.AddrPort, error) {
	a, err := net.ResolveUDPAddr("udp", hostPort)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return a.AddrPort(), nil
}

func (a *address) init(hostPort string) {
	a.hostPort = hostPort
	known, err := netip.ParseAddrPort(hostPort)
	if a.name = err != nil; !a.name {
		a.known.Store(&known)
	}
}

// find is the address. It may wait for a name to be looked up; if that fails, the address that it had before is good
// enough.
func (a *address) find() (netip.AddrPort, error) {
	if !a.name {
		return a.last(), nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !time.Now().Before(a.until) {
		var found netip.AddrPort
		keep := notFoundFor
		if found, a.err = lookUp(a.hostPort); a.err == nil {
			a.known.Store(&found)
			keep = foundFor
		}
		a.until = time.Now().Add(keep)
	}
	if known := a.last(); known.IsValid() {
		return known, nil
	}
	return netip.AddrPort{}, a.err
}

// last is the address that was found last, not valid if none was. It does not wait.
func (a *address) last() netip.AddrPort {
	if known := a.known.Load(); known != nil {
		return *known
	}
	return netip.AddrPort{}
}
