// Package xdp tests what *xdp* reads from a network interface, over a link between two network namespaces that the test
// makes.
package xdp

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The interfaces, and addresses on them.
const (
	serverEnd, clientEnd = "xs", "xc"
	server4, second4     = "198.18.0.1", "198.18.0.3"
	server6, clientIP6   = "2001:2::1", "2001:2::2"
	clientIP4            = "198.18.0.2"
	serverLink           = "fe80::1"
	clientLink           = "fe80::2"
)

// clientSpace is set in the process that runs in the server's namespace: the name of the client's.
const clientSpace = "XDP_TEST_CLIENT"

// TestMain runs the tests in a namespace of their own, with a link to another one.
func TestMain(m *testing.M) {
	if os.Getenv(clientSpace) != "" {
		os.Exit(m.Run())
	}
	if why := cannot(); why != "" {
		fmt.Println("xdp: not run:", why)
		os.Exit(0)
	}
	os.Exit(inside())
}

// cannot says what is missing for the tests.
func cannot() string {
	if os.Geteuid() != 0 {
		return "namespaces and AF_XDP are for root"
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return "ip is missing: apt-get install iproute2"
	}
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW, 0)
	if err != nil {
		return "the kernel has no AF_XDP: " + err.Error()
	}
	unix.Close(fd)
	return ""
}

// inside runs this program once more, with the link.
func inside() int {
	srv, cli := fmt.Sprintf("xdp-s%d", os.Getpid()), fmt.Sprintf("xdp-c%d", os.Getpid())
	defer exec.Command("ip", "netns", "del", srv).Run()
	defer exec.Command("ip", "netns", "del", cli).Run()
	for _, line := range []string{
		"netns add " + srv, "netns add " + cli,
		fmt.Sprintf("link add %s netns %s numtxqueues 2 numrxqueues 2 type veth peer name %s netns %s numtxqueues 2 numrxqueues 2",
			clientEnd, cli, serverEnd, srv),
		fmt.Sprintf("-n %s link set %s addrgenmode none", srv, serverEnd), // those would be good in a second only
		fmt.Sprintf("-n %s link set %s addrgenmode none", cli, clientEnd),
		fmt.Sprintf("-n %s addr add %s/24 dev %s", srv, server4, serverEnd),
		fmt.Sprintf("-n %s addr add %s/24 dev %s", srv, second4, serverEnd),
		fmt.Sprintf("-n %s addr add %s/64 dev %s nodad", srv, server6, serverEnd),
		fmt.Sprintf("-n %s addr add %s/64 dev %s nodad", srv, serverLink, serverEnd),
		fmt.Sprintf("-n %s addr add %s/64 dev %s nodad", cli, clientLink, clientEnd),
		fmt.Sprintf("-n %s addr add %s/24 dev %s", cli, clientIP4, clientEnd),
		fmt.Sprintf("-n %s addr add %s/64 dev %s nodad", cli, clientIP6, clientEnd),
		fmt.Sprintf("-n %s link set lo up", srv), fmt.Sprintf("-n %s link set %s up", srv, serverEnd),
		fmt.Sprintf("-n %s link set lo up", cli), fmt.Sprintf("-n %s link set %s up", cli, clientEnd),
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			fmt.Printf("xdp: not run: ip %s: %v %s\n", line, err, out)
			return 0
		}
	}
	c := exec.Command("ip", append([]string{"netns", "exec", srv}, os.Args...)...)
	c.Env = append(os.Environ(), clientSpace+"="+cli)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return 1
	}
	return 0
}

// asClient runs f in the client's namespace. Sockets that it makes stay there.
func asClient(t testing.TB, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		ns, err := os.Open("/var/run/netns/" + os.Getenv(clientSpace))
		if err == nil {
			defer ns.Close()
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// dial is a socket of the client for a server's address.
func dial(t testing.TB, network, addr string) (c net.Conn) {
	t.Helper()
	asClient(t, func() (err error) {
		c, err = net.Dial(network, addr)
		return err
	})
	t.Cleanup(func() { c.Close() })
	return c
}
