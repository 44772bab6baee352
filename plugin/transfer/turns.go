package transfer

import (
	"net/netip"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// turns bounds how many transfers of one connection are built at one time. A client may ask for many and read nothing:
// what each has built waits for it then, tens of KiB, while one whose turn has not come is next to nothing. The zero
// value is ready.
type turns struct {
	mu    sync.Mutex
	conns map[netip.AddrPort]*turn // by the client's end
}

// turn is that of one connection.
type turn struct {
	atOnce chan struct{}
	users  int // who has it or waits for it; guarded by turns
}

// Transfers of a connection of TCP or TLS follow each other, as their messages do. Of QUIC each has a stream of its own, and
// some clients may read them in another order.
const (
	atOnceTCP  = 1
	atOnceQUIC = 4
)

// take waits until it is the turn of a transfer to the client of w, of which atOnce have theirs at one time. What it
// returns is called at the transfer's end.
func (t *turns) take(w dns.ResponseWriter, atOnce int) (end func()) {
	client := wire.PeerOf(w.RemoteAddr(), nil).Client
	if !client.IsValid() { // others may have none that can be told from it
		return func() {}
	}
	t.mu.Lock()
	if t.conns == nil {
		t.conns = map[netip.AddrPort]*turn{}
	}
	c := t.conns[client]
	if c == nil {
		c = &turn{atOnce: make(chan struct{}, atOnce)}
		t.conns[client] = c
	}
	c.users++
	t.mu.Unlock()
	c.atOnce <- struct{}{}
	return func() {
		<-c.atOnce
		t.mu.Lock()
		defer t.mu.Unlock()
		if c.users--; c.users == 0 {
			delete(t.conns, client)
		}
	}
}
