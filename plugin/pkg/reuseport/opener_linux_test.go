package reuseport

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBothFamilies opens sockets of all addresses where the loopback interface has an address of one family only,
// and another one than usual: clients come by either family. The process is a new one, as package net looks at the interface once.
func TestBothFamilies(t *testing.T) {
	if os.Getenv("REUSEPORT_TEST_NO_LOOPBACK") != "" {
		openBoth(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestBothFamilies$", "-test.v")
	child.Env = append(os.Environ(), "REUSEPORT_TEST_NO_LOOPBACK=1")
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
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

func openBoth(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Skipf("no IPv6: %v", err)
	}
	defer unix.Close(fd)
	setAddress(t, "lo", [4]byte{192, 0, 2, 1})
	for _, host := range []string{"", "0.0.0.0", "::"} {
		l, err := Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		p, others, err := ListenPacketAlone("udp", net.JoinHostPort(host, "0"))
		if err != nil || others {
			t.Fatal(others, err)
		}
		defer p.Close()
		for _, socket := range []any{l, p} {
			raw, err := socket.(syscall.Conn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			_ = raw.Control(func(fd uintptr) {
				if only, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_V6ONLY); only != 0 || err != nil {
					t.Errorf("%T of host %q: IPv6 only %d, %v", socket, host, only, err)
				}
			})
			if got := option(t, socket.(syscall.Conn), unix.SO_REUSEPORT); got != 1 {
				t.Errorf("%T: SO_REUSEPORT is %d", socket, got)
			}
		}
	}
}

// setAddress gives an interface an IPv4 address and none else, and has it up.
func setAddress(t *testing.T, name string, addr [4]byte) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(fd)
	ifr, _ := unix.NewIfreq(name)
	if err := ifr.SetInet4Addr(addr[:]); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFADDR, ifr); err != nil {
		t.Skipf("an address for %s: %v", name, err)
	}
}
