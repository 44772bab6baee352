package proxy

import (
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/udpsockets"
)

// portless are sockets of which no more can be opened while there are no ports.
type portless struct {
	udpsockets.Set
	none  atomic.Bool
	tried atomic.Int64
}

func (s *portless) Open(local netip.Addr, remote netip.AddrPort, to udpsockets.Receiver, loop *eventloop.Loop) (udpsockets.Socket, error) {
	if s.none.Load() {
		s.tried.Add(1)
		return nil, &net.OpError{Op: "dial", Net: "udp", Err: syscall.EADDRNOTAVAIL}
	}
	return s.Set.Open(local, remote, to, loop)
}

// While no socket can be opened queries go out on those that there are, and only now and then another one is tried. When
// it can be, that is done.
func TestNoPorts(t *testing.T) {
	p := proxyTo(t, udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) { send(replyTo(q)) }), transport.DNS)
	all := new(portless)
	p.engine.udp.make = func() (udpsockets.Set, error) {
		s, err := udpsockets.New()
		all.Set = s
		return all, err
	}
	many := func() (took time.Duration) {
		t.Helper()
		begun := time.Now()
		for range 50 {
			if _, err := ask(p, "www.example.org.", Options{}); err != nil {
				t.Fatal(err)
			}
		}
		return time.Since(begun)
	}
	open := func() int {
		p.engine.mu.Lock()
		defer p.engine.mu.Unlock()
		return p.engine.udp.n
	}
	many()
	before := open()
	all.none.Store(true)
	took := many()
	if n, most := all.tried.Load(), 1+int64(took)/openPause; n < 1 || n > most {
		t.Errorf("tried %d times in %v, want 1 to %d", n, took, most)
	}
	all.none.Store(false)
	time.Sleep(time.Duration(openPause))
	if many(); open() <= before {
		t.Errorf("%d sockets, %d before", open(), before)
	}
}
