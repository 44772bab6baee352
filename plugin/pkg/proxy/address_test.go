package proxy

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/transport"
)

// A name that was not found once is looked up again, and one that was found may be found elsewhere later; while it is not
// found, the upstream stays where it was.
func TestUpstreamByName(t *testing.T) {
	upstream := func() (netip.AddrPort, chan struct{}) {
		asked := make(chan struct{}, 1)
		addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
			asked <- struct{}{}
			send(replyTo(q))
		})
		return netip.MustParseAddrPort(addr), asked
	}
	first, atFirst := upstream()
	second, atSecond := upstream()

	lookedUp, found := 0, netip.AddrPort{}
	missing := errors.New("no such host")
	was := lookUp
	defer func() { lookUp = was }()
	lookUp = func(hostPort string) (netip.AddrPort, error) {
		if hostPort != "dns.example.org:53" {
			t.Errorf("looked up %s", hostPort)
		}
		lookedUp++
		if !found.IsValid() {
			return found, missing
		}
		return found, nil
	}
	p := proxyTo(t, "dns.example.org:53", transport.DNS)
	later := func() { // a look-up is due, and there is no socket
		p.where.mu.Lock()
		p.where.until = time.Time{}
		p.where.mu.Unlock()
		p.engine.mu.Lock()
		p.engine.reap(p.engine.now() + int64(2*defaultExpire))
		p.engine.unlock()
	}
	expect := func(when string, at chan struct{}) {
		t.Helper()
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Errorf("%s: %v", when, err)
			return
		}
		select {
		case <-at:
		default:
			t.Errorf("%s: somebody else was asked", when)
		}
	}
	for range 3 {
		if _, err := ask(p, "www.example.org.", Options{}); !errors.Is(err, missing) {
			t.Errorf("not found: %v", err)
		}
	}
	if lookedUp != 1 {
		t.Errorf("looked up %d times in no time", lookedUp)
	}
	found = first
	later()
	expect("found", atFirst)
	found = second
	later()
	expect("moved", atSecond)
	found = netip.AddrPort{}
	later()
	expect("gone", atSecond)
	if lookedUp != 4 {
		t.Errorf("looked up %d times", lookedUp)
	}
}
