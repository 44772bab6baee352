package mmsg

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
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

// zoneOf is the name of an interface, by which link-local addresses are told apart.
func zoneOf(index uint32) string {
	if i, err := net.InterfaceByIndex(int(index)); err == nil {
		return i.Name
	}
	return fmt.Sprint(index)
}
