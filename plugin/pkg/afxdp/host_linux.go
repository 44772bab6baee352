package afxdp

import (
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// hostAddrs is the addresses of the host, in their own form and without zones.
func hostAddrs() (all []netip.Addr, err error) {
	found, err := net.InterfaceAddrs()
	for _, f := range found {
		if p, err := netip.ParsePrefix(f.String()); err == nil {
			all = append(all, p.Addr())
		}
	}
	return all, err
}

// bound is the addresses at which a UDP socket, of whatever process, has a port for one address:
// the kernel gives it what comes there, before who listens on all of them.
func bound(port uint16) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for _, name := range []string{"/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"} {
		text, _ := os.ReadFile(name) // without IPv6 there is none
		for line := range strings.Lines(string(text)) {
			if a, ok := boundAt(line, port); ok {
				all[a] = true
			}
		}
	}
	return all
}

// boundAt is the address of a line of /proc/net/udp, if it is one, has the port, and is not connected. The
// numbers in it are hexadecimal: an address is words in the machine's order of octets.
func boundAt(line string, port uint16) (netip.Addr, bool) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return netip.Addr{}, false
	}
	local, number, _ := strings.Cut(fields[1], ":")
	_, remote, _ := strings.Cut(fields[2], ":")
	n, err := strconv.ParseUint(number, 16, 16)
	b, err2 := hex.DecodeString(local)
	if err != nil || err2 != nil || uint16(n) != port || remote != "0000" || len(b)%4 != 0 {
		return netip.Addr{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	return a.Unmap(), ok && !a.IsUnspecified()
}
