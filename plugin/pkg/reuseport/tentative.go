package reuseport

import (
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/coredns/coredns/plugin/pkg/neterr"
)

// An address of IPv6 that an interface has just got belongs to nobody yet: the machine asks first whether another one
// has it (RFC 4862 §5.4), which takes it a second or two. Until then sockets cannot be bound to it, and a server that
// starts with the machine would not start.
const (
	detection = 5 * time.Second
	lookAgain = 50 * time.Millisecond
)

// settled is what open opens at addr. While it fails as addr is an interface's, but not to be used yet, it is tried
// again.
func settled[T any](addr string, open func() (T, error)) (v T, err error) {
	for end := time.Now().Add(detection); ; time.Sleep(lookAgain) {
		v, err = open()
		if !neterr.Is(err, syscall.EADDRNOTAVAIL) || !isTentative(addr) || time.Now().After(end) {
			return v, err
		}
	}
}

// isTentative reports whether addr, to which no socket can be bound, is an IPv6 address of an interface all the same.
func isTentative(addr string) bool {
	a, err := netip.ParseAddrPort(addr)
	if err != nil || !a.Addr().Is6() {
		return false
	}
	all, _ := net.InterfaceAddrs()
	for _, own := range all {
		if n, ok := own.(*net.IPNet); ok && n.IP.Equal(a.Addr().AsSlice()) {
			return true
		}
	}
	return false
}
