package mmsg

import (
	"net"
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestZonesAreRemembered asks the system but once for the name of an interface.
func TestZonesAreRemembered(t *testing.T) {
	name := unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: netip.MustParseAddr("fe80::1").As16(), Scope_id: 1}
	kept := AddrPort(&name)
	if n := testing.AllocsPerRun(100, func() { AddrPort(&name) }); n > 1 {
		t.Errorf("%v pieces of memory for %s", n, kept)
	}
	other := name
	other.Scope_id += uint32(len(zones)) // in the same place
	if got := AddrPort(&other); got == kept || AddrPort(&name) != kept {
		t.Errorf("%s is taken for %s", got, kept)
	}
}

func TestAddrPort(t *testing.T) {
	const port = 4711
	var four, six, local unix.RawSockaddrInet6
	in := (*unix.RawSockaddrInet4)(unsafe.Pointer(&four))
	in.Family, in.Addr = unix.AF_INET, [4]byte{192, 0, 2, 1}
	six.Family, six.Addr = unix.AF_INET6, netip.MustParseAddr("2001:db8::1").As16()
	local.Family, local.Addr, local.Scope_id = unix.AF_INET6, netip.MustParseAddr("fe80::1").As16(), 1
	zone := "1"
	if i, err := net.InterfaceByIndex(1); err == nil {
		zone = i.Name
	}
	for want, name := range map[string]*unix.RawSockaddrInet6{
		"192.0.2.1:4711": &four, "[2001:db8::1]:4711": &six, "[fe80::1%" + zone + "]:4711": &local,
	} {
		*(*[2]byte)(unsafe.Pointer(&name.Port)) = [2]byte{port >> 8, port & 0xff}
		if got := AddrPort(name); got != netip.MustParseAddrPort(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
