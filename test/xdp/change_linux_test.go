package xdp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// ip runs ip(8) in the server's namespace; -n CLIENT is the client's.
func ip(t testing.TB, line string) {
	t.Helper()
	line = strings.ReplaceAll(line, "CLIENT", os.Getenv(clientSpace))
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", line, err, out)
	}
}

// A link that is made anew with the name of an old one has another number. Replies go there, also those that are not
// made at once, though the name of the client's zone is the same.
func TestLinkMadeAnew(t *testing.T) {
	port := freePort(t)
	start(t, fmt.Sprintf("example:%s {\nfile %s\n}\n", port, zoneFile(t)))
	for range 2 {
		for _, line := range []string{
			"link add zs type veth peer name zc netns CLIENT",
			"link set zs addrgenmode none", "addr add fe80::11/64 dev zs nodad", "link set zs up",
			"-n CLIENT link set zc addrgenmode none", "-n CLIENT addr add fe80::12/64 dev zc nodad", "-n CLIENT link set zc up",
		} {
			ip(t, line)
		}
		// The latter takes the message lane.
		for _, m := range []*dns.Msg{question("www.example.", dns.TypeA), new(dns.Msg).SetNotify("example.")} {
			asClient(t, func() error { return askOn("zc", "fe80::11", port, m) })
		}
		ip(t, "link del zs")
	}
}

// askOn asks a server at an address of a link. Package net keeps what links there are, for all threads, and so for both
// namespaces: it is not used.
func askOn(link, server, port string, m *dns.Msg) error {
	b, err := m.Pack()
	if err != nil {
		return err
	}
	i, err := net.InterfaceByName(link)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to := &unix.SockaddrInet6{Addr: netip.MustParseAddr(server).As16(), ZoneId: uint32(i.Index)}
	if to.Port, err = strconv.Atoi(port); err != nil {
		return err
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		// The link may not be ready yet.
		if err = unix.Connect(fd, to); err == nil {
			break
		}
	}
	err = errors.Join(err, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}))
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, b); err != nil {
		return err
	}
	if n, err := unix.Read(fd, make([]byte, 1500)); err != nil || n < 12 {
		return fmt.Errorf("no reply to %s: %w", dns.OpcodeToString[m.Opcode], err)
	}
	return nil
}
