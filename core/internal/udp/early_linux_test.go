package udp

import (
	"context"
	"net"
	"runtime"
	"testing"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
)

// free reports whether nobody has a socket at addr.
func free(addr string) bool {
	p, err := new(net.ListenConfig).ListenPacket(context.Background(), "udp", addr)
	if err == nil {
		p.Close()
	}
	return err == nil
}

// Sockets that were opened early are those of the server that comes; it opens no others.
func TestOpenEarly(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	first, err := reuseport.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := first.LocalAddr().String()
	OpenEarly(addr)
	early := extra.sockets[localOf(first.(*net.UDPConn))]
	if early == nil || len(early.conns) != 2 {
		t.Fatalf("opened %+v, want two sockets", early)
	}
	u := New(coretest.Service(t, "dns://"+addr), first, Options{})
	if u.handed != early || len(early.conns) != 2 || len(u.sockets) != 3 {
		t.Errorf("the server took %+v and serves %d sockets", u.handed, len(u.sockets))
	}
	DropUnused()
	if extra.sockets[early.addr] != early {
		t.Error("sockets in use were dropped")
	}
	u.Close()
	if !free(addr) {
		t.Error("sockets are left")
	}
}

// Sockets that no server takes are closed: what the kernel gives them would be lost.
func TestDropUnused(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	first, err := reuseport.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := first.LocalAddr().String()
	OpenEarly(addr)
	first.Close()
	if free(addr) {
		t.Fatal("none was opened")
	}
	DropUnused()
	if !free(addr) {
		t.Error("one is left")
	}
}
