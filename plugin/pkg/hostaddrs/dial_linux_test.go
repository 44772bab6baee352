package hostaddrs

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A link that is made anew has another number, by which its addresses are reached at once.
func TestDial(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces are for root")
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip(err)
	}
	make := func(number string) {
		for _, line := range []string{
			"link add anew0 index " + number + " type veth peer name anew1", "link set anew0 addrgenmode none",
			"addr add fe80::1/64 dev anew0 nodad", "link set anew0 up", "link set anew1 up", "link set lo up",
		} {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				t.Skipf("ip %s: %v: %s", line, err, out)
			}
		}
	}
	for _, number := range []string{"1001", "1002"} {
		make(number)
		l, err := net.Listen("tcp6", "[::]:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addr := netip.AddrPortFrom(netip.MustParseAddr("fe80::1%anew0"), l.Addr().(*net.TCPAddr).AddrPort().Port()).String()
		if got, want := ByNumber(addr), strings.Replace(addr, "anew0", number, 1); got != want {
			t.Errorf("%s by number is %s, want %s", addr, got, want)
		}
		c, err := Dial(context.Background(), new(net.Dialer), "tcp", addr)
		if err != nil {
			t.Errorf("number %s: %v", number, err)
		} else {
			c.Close()
		}
		l.Close()
		if _, err := Dial(context.Background(), new(net.Dialer), "tcp", addr); err == nil || !strings.Contains(err.Error(), addr) {
			t.Errorf("got error %v, want one with %s", err, addr)
		}
		if err := exec.Command("ip", "link", "del", "anew0").Run(); err != nil {
			t.Fatal(err)
		}
	}
}

// Other addresses are as they are.
func TestByNumber(t *testing.T) {
	for _, addr := range []string{"192.0.2.1:53", "[2001:db8::1]:53", "[fe80::1]:53", "[fe80::1%none0]:53", "dns.example.org:53", "[fe80::1%3]:53"} {
		if got := ByNumber(addr); got != addr {
			t.Errorf("%s by number is %s", addr, got)
		}
	}
}
