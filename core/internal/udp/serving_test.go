package udp

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/test/clients"
)

// served is a Transport at work.
type served struct {
	*Transport
	addr string
	end  func() error // stops it, and waits for that
}

// serveOn serves on p until the test ends.
func serveOn(t testing.TB, s *service.Service, p net.PacketConn, o Options) *served {
	t.Helper()
	if o.Saturated == nil {
		o.Saturated = new(atomic.Int32)
	}
	u := New(s, p, o)
	end := coretest.Serving(t, u, func() error { u.Serve(); return nil })
	return &served{u, p.LocalAddr().String(), end}
}

// shareable is a socket on loopback whose address it shares with others of the process.
func shareable(t testing.TB) net.PacketConn {
	t.Helper()
	p, err := reuseport.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// serving serves a handler on loopback.
func serving(t testing.TB, h plugin.Handler, o Options) *served {
	t.Helper()
	return serveOn(t, coretest.Service(t, coretest.Label(t), h), shareable(t), o)
}

// ask asks for a name.
func ask(t testing.TB, addr, name string, change func(*dns.Msg)) *dns.Msg {
	t.Helper()
	m := coretest.Query(name)
	if change != nil {
		change(m)
	}
	r, err := clients.UDPClient{Addr: addr}.Ask(m)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}
