//go:build linux

// Package linktest has tests make interfaces of their own, in a network namespace that goes with the test. Start at
// Own.
package linktest

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Own has the test's goroutine run in a network namespace in which nothing is but a loopback interface that is down.
// Other goroutines stay where they are. The test is skipped where that may not be.
func Own(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("namespaces are for root")
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip(err)
	}
}

// IP runs ip(8) with each line of arguments. The test is skipped where one of them cannot be had.
func IP(t testing.TB, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Skipf("ip %s: %v: %s", line, err, out)
		}
	}
}

// Link makes a link with the number, which is up: its ends are interfaces name and name+"-peer", and fe80::1 is the
// address of the first.
func Link(t testing.TB, name, number string) {
	t.Helper()
	peer := name + "-peer"
	IP(t, "link add "+name+" index "+number+" type veth peer name "+peer, "link set "+name+" addrgenmode none",
		"addr add fe80::1/64 dev "+name+" nodad", "link set "+name+" up", "link set "+peer+" up", "link set lo up")
}

// Remove takes a link away.
func Remove(t testing.TB, name string) {
	t.Helper()
	if out, err := exec.Command("ip", "link", "del", name).CombinedOutput(); err != nil {
		t.Fatalf("ip link del %s: %v: %s", name, err, out)
	}
}
