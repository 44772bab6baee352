package proxy

import (
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/packed"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/udpsockets"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// renumbered is sockets of a machine whose address may change: those of the former one send nothing any more, or
// in vain.
type renumbered struct {
	mirror
	times  atomic.Int64 // that the address changed
	opened atomic.Int64
	away   atomic.Bool // none sends
	silent bool        // without an error
	former *net.UDPAddr
}

func (r *renumbered) Open(local netip.Addr, remote netip.AddrPort, to udpsockets.Receiver, loop *eventloop.Loop) (udpsockets.Socket, error) {
	s, _ := r.mirror.Open(local, remote, to, loop)
	r.opened.Add(1)
	return &renumberedSocket{s.(*mirrorSocket), r, r.times.Load()}, nil
}

type renumberedSocket struct {
	*mirrorSocket
	all  *renumbered
	born int64
}

func (s *renumberedSocket) Send(b []byte) error {
	switch {
	case s.born == s.all.times.Load() && !s.all.away.Load():
		return s.mirrorSocket.Send(b)
	case s.all.silent:
		return nil
	}
	return os.NewSyscallError("write", syscall.ENETUNREACH)
}

// Addr is the former one, if it has that, or none.
func (s *renumberedSocket) Addr() net.Addr {
	if s.born == s.all.times.Load() || s.all.former == nil {
		return nil
	}
	return s.all.former
}

func renumberedProxy(t *testing.T, silent bool) (*Proxy, *renumbered) {
	p, r := proxyTo(t, "192.0.2.1:53", transport.DNS), &renumbered{silent: silent}
	p.SetExpire(time.Hour)
	p.engine.udp.make = func() (udpsockets.Set, error) { return r, nil }
	return p, r
}

// When the machine gets another address, a query goes out from that at once, with its letters and its reply as ever.
func TestAnotherAddress(t *testing.T) {
	defer func(b int64) { socketBudget.limit = b }(socketBudget.limit)
	socketBudget.limit = 0
	p, r := renumberedProxy(t, false)
	p.randomCase = true
	ask := func() error {
		over := make(ended, 1)
		x := &Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Owner: over}
		p.Begin(x)
		<-over
		if got := string(x.Query[wire.HeaderLen:]); got != string(packed.Message(t, "www.example.org.", dns.TypeA)[wire.HeaderLen:]) {
			t.Errorf("the query is %q", got)
		}
		return x.Err
	}
	for range 2 * minSockets {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.opened.Load(); n != minSockets {
		t.Fatalf("%d sockets", n)
	}
	r.times.Add(1)
	for range 4 {
		if err := ask(); err != nil {
			t.Error(err)
		}
	}
	r.away.Store(true)
	before := r.opened.Load()
	if err := ask(); err == nil {
		t.Error("no error without a network")
	}
	if n := r.opened.Load() - before; n > 1 {
		t.Errorf("a query opened %d sockets", n)
	}
}

// A socket on which a reply did not come carries no more queries: its address may be the machine's still, and replies go
// astray.
func TestAnotherAddressThatNobodyTells(t *testing.T) {
	defer func(b int64) { socketBudget.limit = b }(socketBudget.limit)
	socketBudget.limit = 0
	p, r := renumberedProxy(t, true)
	p.SetReadTimeout(20 * time.Millisecond)
	over := make(ended, 1)
	ask := func() error {
		x := &Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Owner: over}
		p.Begin(x)
		<-over
		return x.Err
	}
	for range 2 * minSockets {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	r.times.Add(1)
	failed := 0
	eventually.Holds(t, "new sockets", func() bool {
		if ask() != nil {
			failed++
		}
		return r.opened.Load() == 2*minSockets
	})
	if err := ask(); err != nil || failed > minSockets {
		t.Errorf("%v, after %d failures", err, failed)
	}
}

// Once one socket is known to have an address that the machine had, the others are not waited for.
func TestFormerAddress(t *testing.T) {
	defer func(b int64) { socketBudget.limit = b }(socketBudget.limit)
	socketBudget.limit = 0
	p, r := renumberedProxy(t, true)
	r.former = &net.UDPAddr{IP: net.IPv4(192, 0, 2, 77), Port: 40000}
	p.SetReadTimeout(20 * time.Millisecond)
	over := make(ended, 1)
	failed := 0
	for i := range 4 * minSockets {
		if i == 2*minSockets {
			r.times.Add(1)
		}
		x := &Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Owner: over}
		p.Begin(x)
		if <-over; x.Err != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d queries failed", failed)
	}
}
