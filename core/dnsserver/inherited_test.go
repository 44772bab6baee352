//go:build unix

package dnsserver

import (
	"net"
	"syscall"
	"testing"

	"github.com/coredns/coredns/core/internal/caddystate"
)

// A socket that was handed over and is no server's gets nothing any more.
func TestCloseUnclaimed(t *testing.T) {
	defer func(was map[string]uintptr) { caddystate.Inherited.ListenerFds = was }(caddystate.Inherited.ListenerFds)
	sockets := map[string]*net.UDPConn{}
	caddystate.Inherited.ListenerFds = map[string]uintptr{}
	for _, addr := range []string{"dns://192.0.2.1:53", "dns://192.0.2.1:53#2", "dns://192.0.2.2:53"} {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		f, err := c.File()
		if err != nil {
			t.Fatal(err)
		}
		fd, err := syscall.Dup(int(f.Fd())) // which keeps the socket
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		c.Close()
		caddystate.Inherited.ListenerFds["udp"+addr] = uintptr(fd)
		sockets[addr] = c
	}
	const unclaimed = "dns://192.0.2.2:53"
	g := &generation{servers: []*Server{{Addr: "dns://192.0.2.1:53"}, {Addr: "dns://192.0.2.1:53", nth: 1}}}
	g.closeUnclaimed()
	for addr, c := range sockets {
		again, err := net.ListenUDP("udp", c.LocalAddr().(*net.UDPAddr))
		if err == nil {
			again.Close()
		}
		if gone := err == nil; gone != (addr == unclaimed) {
			t.Errorf("%s: is gone: %t", addr, gone)
		}
		if addr != unclaimed {
			syscall.Close(int(caddystate.Inherited.ListenerFds["udp"+addr]))
		}
	}
}
