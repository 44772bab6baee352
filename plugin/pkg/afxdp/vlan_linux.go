package afxdp

import (
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/log"

	"golang.org/x/sys/unix"
)

// classNet is where the system tells of its interfaces.
const classNet = "/sys/class/net"

// sees reports whether the program can tell what comes in a VLAN from what does not. It sees the tags of frames, unless
// the card, or who sends the frames on the same machine, has put them beside the frame. A reply would go out without a
// tag, and so into another VLAN. root is classNet, but for tests. d.mu is held.
func (d *Device) sees(root string) bool {
	name := *d.name.Load()
	blind := tagged(root, name) && (stacked(root, name) || untags(name))
	if blind && !d.blind {
		log.Warningf("Queries that come on %s go through the kernel: it has VLANs, and takes their tags off before frames are read; "+
			"ethtool -K %[1]s rxvlan off may help", name)
	}
	d.blind = blind
	return !blind
}

// tagged reports whether the host has a part in VLANs of an interface: one of those above it is a VLAN, or a bridge
// that knows of VLANs.
func tagged(root, name string) bool {
	above, _ := filepath.Glob(filepath.Join(root, name, "upper_*"))
	for _, link := range above {
		upper := strings.TrimPrefix(filepath.Base(link), "upper_")
		kind, _ := os.ReadFile(filepath.Join(root, upper, "uevent"))
		filters, _ := os.ReadFile(filepath.Join(root, upper, "bridge/vlan_filtering"))
		if strings.Contains(string(kind), "DEVTYPE=vlan\n") || strings.TrimSpace(string(filters)) == "1" || tagged(root, upper) {
			return true
		}
	}
	return false
}

// stacked reports whether an interface stands on others: the kernel has taken the tags off before it gets frames.
func stacked(root, name string) bool {
	below, _ := filepath.Glob(filepath.Join(root, name, "lower_*"))
	return len(below) > 0
}

// untags reports whether an interface has its card take the tags off (ethtool's rx-vlan-offload).
func untags(name string) bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	const rxVLAN = 1 << 8 // ETH_FLAG_RXVLAN
	told := struct{ command, flags uint32 }{command: unix.ETHTOOL_GFLAGS}
	request := struct {
		name [unix.IFNAMSIZ]byte
		told unsafe.Pointer
		_    [16]byte // the kernel copies a whole struct ifreq
	}{told: unsafe.Pointer(&told)}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	return e == 0 && told.flags&rxVLAN != 0
}
