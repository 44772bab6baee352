package udpsockets

import (
	"net/netip"
	"runtime"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/sockcall/sockcalltest"

	"golang.org/x/sys/unix"
)

// A socket is opened without asking for options, which a sandbox may refuse, and a system call costs.
func TestSocketAsksForNoOptions(t *testing.T) {
	all, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(all.Stop)
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // which ends with the goroutine
		if err := sockcalltest.RefuseCalls(unix.EPERM, false, unix.SYS_GETSOCKOPT); err != nil {
			t.Logf("no filters of system calls: %v", err)
		}
		s, err := all.Open(netip.Addr{}, netip.MustParseAddrPort("127.0.0.1:9"), nil, nil)
		if err == nil {
			if a, err := netip.ParseAddrPort(s.Addr().String()); err != nil || a.Addr() != netip.MustParseAddr("127.0.0.1") || a.Port() == 0 {
				t.Errorf("its address is %v", s.Addr())
			}
			s.Close()
		}
		failed <- err
	}()
	if err := <-failed; err != nil {
		t.Error(err)
	}
}
