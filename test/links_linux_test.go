package test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/miekg/dns"
)

// inOwnNetwork runs test in a process with a network of its own.
func inOwnNetwork(t *testing.T, test func(*testing.T)) {
	if os.Getenv("TEST_OWN_NETWORK") != "" {
		test(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), "TEST_OWN_NETWORK=1")
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
	}
	out, err := child.CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Skipf("no namespaces: %v", err)
	}
	switch {
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()):
		t.Skipf("%s", out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Fatalf("it has not run:\n%s", out)
	}
}

// TestInterfaceComesBack serves the link-local address of an interface that goes away and comes back: with the next
// reload the server listens there again.
func TestInterfaceComesBack(t *testing.T) { inOwnNetwork(t, interfaceComesBack) }

// TestUpstreamsWithoutIPv4 forwards over each transport on a machine that has no IPv4 address at all.
func TestUpstreamsWithoutIPv4(t *testing.T) { inOwnNetwork(t, upstreamsWithoutIPv4) }

func upstreamsWithoutIPv4(t *testing.T) {
	ip(t, "link set lo up")
	ip(t, "addr del 127.0.0.1/8 dev lo")
	dir := t.TempDir()
	certificates(t, dir)
	var corefile strings.Builder
	zones := map[string]string{"tcp": "dns", "dot": "tls", "doh": "https", "doq": "quic", "doh3": "https3"}
	port := 5300
	for zone, scheme := range zones {
		port++
		fmt.Fprintf(&corefile, "%s://.:%d {\ntls %[3]s/cert.pem %[3]s/key.pem\nwhoami\n}\n", scheme, port, dir)
		fmt.Fprintf(&corefile, "%s.:5300 {\nforward . %s://[::1]:%d {\ntls %s/ca.pem\ntls_servername ns.example.org\n}\n}\n", zone, scheme, port, dir)
	}
	i, err := CoreDNSServer(corefile.String())
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	for zone := range zones {
		for _, network := range []string{"udp", "tcp"} {
			if m := ask(t, network, "[::1]:5300", question("www."+zone+".", dns.TypeA)); m == nil || m.Rcode != dns.RcodeSuccess {
				t.Errorf("%s, %s: got %v", zone, network, m)
			}
		}
	}
}

func interfaceComesBack(t *testing.T) {
	ip(t, "link set lo up")
	makeLink(t)
	i, udp, tcp, err := CoreDNSServerAndPorts(".:0 {\nbind fe80::1%there\nwhoami\n}")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer func() { r.end() }()
	for _, when := range []string{"at first", "when it came back"} {
		for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
			addr = strings.Replace(addr, "there", number(t), 1)
			// The system loses datagrams while the link comes up.
			eventually.Holds(t, when+", an answer over "+network, func() bool {
				m := ask(t, network, addr, question("www.example.org.", dns.TypeA))
				return m != nil && m.Rcode == dns.RcodeSuccess
			})
		}
		ip(t, "link del there")
		makeLink(t)
		next, err := r.instance.Restart(NewInput(".:0 {\nbind fe80::1%there\nwhoami\nerrors\n}"))
		if err != nil {
			t.Fatal(err)
		}
		r.instance = next
		udp, tcp = CoreDNSServerPorts(next, 0)
	}
}

// makeLink makes an interface with a link-local address.
func makeLink(t *testing.T) {
	ip(t, "link add there type veth peer name other")
	ip(t, "link set there addrgenmode none")
	ip(t, "addr add fe80::1/64 dev there nodad")
	ip(t, "link set there up")
	ip(t, "link set other up")
}

// number is that of the interface: package net keeps those of names for a minute.
func number(t *testing.T) string {
	t.Helper()
	i, err := net.InterfaceByName("there")
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(i.Index)
}

func ip(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Skipf("ip %s: %v %s", args, err, out)
	}
}
