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

	"github.com/coredns/coredns/plugin/pkg/afxdp"
	whole "github.com/coredns/coredns/test"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// ip runs ip(8) in the server's namespace. CLIENT and SERVER are the names of the two.
func ip(t testing.TB, line string) {
	t.Helper()
	client := os.Getenv(clientSpace)
	line = strings.NewReplacer("CLIENT", client, "SERVER", strings.Replace(client, "xdp-c", "xdp-s", 1)).Replace(line)
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", line, err, out)
	}
}

// link makes a link beside the usual one, between the server's interface name+"s" and the client's name+"c", with addresses of
// a network of IPv4, of which the server has the first one.
func link(t testing.TB, name, network string) (server string) {
	t.Helper()
	s, c := name+"s", name+"c"
	for _, line := range []string{
		"link add " + s + " type veth peer name " + c + " netns CLIENT",
		"link set " + s + " addrgenmode none", "addr add " + network + "1/24 dev " + s, "link set " + s + " up",
		"-n CLIENT link set " + c + " addrgenmode none", "-n CLIENT addr add " + network + "2/24 dev " + c,
		"-n CLIENT link set " + c + " up",
	} {
		ip(t, line)
	}
	t.Cleanup(func() { ip(t, "-n CLIENT link del "+c) })
	return network + "1"
}

// answered reports whether a query is answered, and whether it is read past the kernel.
func answered(t testing.TB, server string) (ok, past bool) {
	t.Helper()
	c := dial(t, "udp", server)
	c.SetDeadline(time.Now().Add(100 * time.Millisecond))
	received, _ := counted(t, func() {
		conn := &dns.Conn{Conn: c}
		if conn.WriteMsg(question("www.example.", dns.TypeA)) == nil {
			_, err := conn.ReadMsg()
			ok = err == nil
		}
	})
	return ok, received > 0
}

// soon waits until a query is answered, or not, as it is wanted.
func soon(t *testing.T, what, server string, wantOK, wantPast bool) {
	t.Helper()
	var ok, past bool
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok, past = answered(t, server); ok == wantOK && past == wantPast {
			return
		}
	}
	t.Errorf("%s: answered %v, past the kernel %v; want %v, %v", what, ok, past, wantOK, wantPast)
}

// What becomes of interfaces while they are open is seen at the next look. One that has been in another namespace is
// opened by a reload.
func TestChanges(t *testing.T) {
	zone, port := zoneFile(t), freePort(t)
	moved, renewed, left := link(t, "m", "198.19.1.")+":"+port, link(t, "r", "198.19.2.")+":"+port, link(t, "l", "198.19.3.")+":"+port
	corefile := fmt.Sprintf("example:%s {\nxdp ms rs ls\nbind 198.19.1.1 198.19.2.1 198.19.3.1\nfile %s\n}\n", port, zone)
	i, err := whole.CoreDNSServer(corefile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(i) })
	for _, server := range []string{moved, renewed, left} {
		soon(t, "at first", server, true, true)
	}

	ip(t, "link set ms netns CLIENT")
	ip(t, "-n CLIENT link set ms netns SERVER")
	ip(t, "addr add 198.19.1.1/24 dev ms")
	ip(t, "link set ms up")
	ip(t, "link set rs address 02:00:00:00:00:99")
	ip(t, "-n CLIENT neigh flush dev rc")
	ip(t, "addr del 198.19.3.1/24 dev ls")
	soon(t, "another address on the link", renewed, true, true)
	soon(t, "moved and back", moved, true, false)
	soon(t, "an address that the host has no more", left, false, false)

	if i, err = i.Restart(whole.NewInput(strings.Replace(corefile, "198.19.3.1", "", 1))); err != nil {
		t.Fatal(err)
	}
	soon(t, "moved and back, reloaded", moved, true, true)
}

// Replies that an interface does not send while it is down go out when it is up again, though there is no frame left for
// another one that would have them sent.
func TestSendsWhenUp(t *testing.T) {
	address := netip.MustParseAddrPort(link(t, "d", "198.19.4.") + ":" + freePort(t))
	target, err := afxdp.Listen("ds", address, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	fmt.Fprint(dial(t, "udp", address.String()), "a question that is long enough")
	s := target.Sockets[0]
	var batch []afxdp.Datagram
	for end := time.Now().Add(3 * time.Second); len(batch) == 0 && time.Now().Before(end); {
		batch = s.Receive()
	}
	if len(batch) == 0 {
		t.Fatal("nothing came")
	}
	ip(t, "link set ds down")
	for s.Answer(&batch[0], append(s.Space(), "yes"...)) {
		s.Send()
	}
	ip(t, "link set ds up")
	s.Send()
	if !s.Answer(&batch[0], append(s.Space(), "yes"...)) {
		t.Error("no frame for a reply")
	}
}

// A link that is made anew with the name of an old one has another number. Replies go there, also those that are not
// made at once, though the name of the client's zone is the same.
func TestLinkMadeAnew(t *testing.T) {
	port := freePort(t)
	start(t, fmt.Sprintf("example:%s {\nfile %s\n}\n", port, zoneFile(t)))
	for range 2 {
		localLink(t)
		// The latter takes the message lane.
		for _, m := range []*dns.Msg{question("www.example.", dns.TypeA), new(dns.Msg).SetNotify("example.")} {
			asClient(t, func() error { return askOn("zc", "fe80::11", port, m) })
		}
		ip(t, "link del zs")
	}
}

// localLink makes a link between the server's interface zs, which is fe80::11, and the client's zc, fe80::12.
func localLink(t testing.TB) {
	t.Helper()
	for _, line := range []string{
		"link add zs type veth peer name zc netns CLIENT",
		"link set zs addrgenmode none", "addr add fe80::11/64 dev zs nodad", "link set zs up",
		"-n CLIENT link set zc addrgenmode none", "-n CLIENT addr add fe80::12/64 dev zc nodad", "-n CLIENT link set zc up",
	} {
		ip(t, line)
	}
}

// An upstream on a link that is made anew is asked there at once, over TCP, too.
func TestUpstreamOnLinkMadeAnew(t *testing.T) {
	var upstream net.Listener
	asClient(t, func() (err error) {
		upstream, err = net.Listen("tcp6", "[::]:0")
		return err
	})
	server := &dns.Server{Listener: upstream, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
		w.WriteMsg(new(dns.Msg).SetReply(m))
	})}
	go server.ActivateAndServe()
	t.Cleanup(func() { server.Shutdown() })
	_, at, _ := net.SplitHostPort(upstream.Addr().String())
	port := freePort(t)
	start(t, fmt.Sprintf("example:%s {\nforward . [fe80::12%%zs]:%s {\nforce_tcp\nexpire 1ms\n}\n}\n", port, at))
	c, err := net.Dial("udp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for n := range 2 {
		localLink(t)
		// The link may not be ready yet.
		r := exchange(t, c, question("www.example.", dns.TypeA))
		for end := time.Now().Add(10 * time.Second); r.Rcode != dns.RcodeSuccess && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			r = exchange(t, c, question("www.example.", dns.TypeA))
		}
		if r.Rcode != dns.RcodeSuccess {
			t.Errorf("link %d: got %s", n, dns.RcodeToString[r.Rcode])
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
