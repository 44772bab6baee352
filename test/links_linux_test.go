package test

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"
)

// TestInterfaceComesBack serves the link-local address of an interface that goes away and comes back: with the next
// reload the server listens there again. It runs in a network of its own.
func TestInterfaceComesBack(t *testing.T) {
	if os.Getenv("TEST_OWN_NETWORK") != "" {
		interfaceComesBack(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestInterfaceComesBack$", "-test.v")
	child.Env = append(os.Environ(), "TEST_OWN_NETWORK=1")
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
	}
	out, err := child.CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Skipf("no namespaces: %v", err)
	}
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
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
			if m := ask(t, network, addr, question("www.example.org.", dns.TypeA)); m == nil || m.Rcode != dns.RcodeSuccess {
				t.Errorf("%s, %s: got %v", when, network, m)
			}
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
