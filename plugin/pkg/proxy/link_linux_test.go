package proxy

import (
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The address of a link is reached over UDP as soon as the link is made anew, with another number.
func TestSocketToALinkMadeAnew(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces are for root")
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip(err)
	}
	all, err := newPortableSockets(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer all.stop()
	for _, number := range []string{"1003", "1004"} {
		for _, line := range []string{
			"link add udp0 index " + number + " type veth peer name udp1", "link set udp0 addrgenmode none",
			"addr add fe80::1/64 dev udp0 nodad", "link set udp0 up", "link set udp1 up", "link set lo up",
		} {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				t.Skipf("ip %s: %v: %s", line, err, out)
			}
		}
		s, err := all.open(netip.Addr{}, netip.MustParseAddrPort("[fe80::1%udp0]:53"), nil, nil)
		if err != nil {
			t.Fatalf("number %s: %v", number, err)
		}
		s.close()
		if err := exec.Command("ip", "link", "del", "udp0").Run(); err != nil {
			t.Fatal(err)
		}
	}
}
