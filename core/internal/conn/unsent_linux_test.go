package conn

import (
	"syscall"
	"testing"

	"github.com/pires/go-proxyproto"
	"golang.org/x/sys/unix"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
)

// unsentOf is how many octets the system takes for a socket beyond those that are on their way.
func unsentOf(t *testing.T, socket any) (n int) {
	t.Helper()
	raw, err := socket.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if cerr := raw.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT) }); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	return n
}

// Connections have it from their listener, also from one that reads PROXY headers.
func TestLittleUnsent(t *testing.T) {
	policy := func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) { return proxyproto.USE, nil }
	for name, policy := range map[string]proxyproto.ConnPolicyFunc{"plain": nil, "PROXY": policy} {
		from, err := reuseport.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		if n := unsentOf(t, from); n == mostUnsent {
			t.Fatalf("%s: it is so before", name)
		}
		littleUnsent(Proxied(from, policy, coretest.Label(t)))
		coretest.Dial(t, from.Addr().String())
		c, err := from.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if n := unsentOf(t, c); n != mostUnsent {
			t.Errorf("%s: the system takes %d octets", name, n)
		}
	}
}

// Each listener that is served does so, with and without goroutines for its connections.
func TestServedKeepLittleUnsent(t *testing.T) {
	light, _, _ := serveLightLines(t, nil)
	heavy, _, _ := serveLines(t, lineService(t), newLineServer(), coretest.Certificate(t), nil)
	for name, l := range map[string]*Listener{"light": light, "TLS": heavy} {
		l.mu.Lock()
		from := l.listener
		l.mu.Unlock()
		eventually.Holds(t, name+": it is served", func() bool { return unsentOf(t, from) != 0 })
		if n := unsentOf(t, from); n != mostUnsent {
			t.Errorf("%s: the system takes %d octets", name, n)
		}
	}
}
