package endpoint

import (
	"runtime"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/sockcall/sockcalltest"

	"golang.org/x/sys/unix"
)

// In a sandbox that does not tell what sockets are bound to an endpoint cannot be opened, and an error tells why.
func TestWithoutAddress(t *testing.T) {
	if runtime.GOARCH == "386" || runtime.GOARCH == "s390x" {
		t.Skip("here sockets have one call for all, which cannot be refused")
	}
	runtime.LockOSThread() // which ends with the test
	if err := sockcalltest.RefuseCalls(unix.EPERM, false, unix.SYS_GETSOCKNAME); err != nil {
		t.Skipf("no filters of system calls: %v", err)
	}
	l := New(nil, Spec{Addr: "127.0.0.1:0"})
	defer l.Close()
	if err := l.Open(); err == nil || !strings.Contains(err.Error(), "listen tcp 127.0.0.1:0: ") {
		t.Errorf("got %v", err)
	}
}
