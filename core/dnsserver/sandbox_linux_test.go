package dnsserver

import (
	"runtime"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/sockcall/sockcalltest"

	"golang.org/x/sys/unix"
)

// TestSocketsWithoutAddress listens in a sandbox that does not tell what sockets are bound to.
func TestSocketsWithoutAddress(t *testing.T) {
	if runtime.GOARCH == "386" || runtime.GOARCH == "s390x" {
		t.Skip("here sockets have one call for all, which cannot be refused")
	}
	runtime.LockOSThread() // which ends with the test
	if err := sockcalltest.RefuseCalls(unix.EPERM, false, unix.SYS_GETSOCKNAME); err != nil {
		t.Skipf("no filters of system calls: %v", err)
	}
	s, err := NewServer("dns://127.0.0.1:0", []*Config{block1(".", echo)})
	if err != nil {
		t.Fatal(err)
	}
	_, tcp := s.Listen()
	_, udp := s.ListenPacket()
	for network, err := range map[string]error{"tcp": tcp, "udp": udp} {
		if err == nil || !strings.Contains(err.Error(), "listen "+network+" 127.0.0.1:0: ") {
			t.Errorf("%s: got %v", network, err)
		}
	}
}
