package transfer

import (
	"net/netip"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// turns has the transfers of one connection follow each other. A client may ask for many at one time and read nothing:
// what each has built waits for it then, tens of KiB, while one whose turn has not come is next to nothing. The zero
// value is ready.
type turns struct {
	mu    sync.Mutex
	conns map[netip.AddrPort]*turn // by the client's end
}

// turn is that of one connection.
type turn struct {
	sync.Mutex

	users int // who has it or waits for it; guarded by turns
}

// take waits until it is the turn of a transfer to the client of w. What it returns is called at the transfer's end.
func (t *turns) take(w dns.ResponseWriter) (end func()) {
	client := wire.PeerOf(w.RemoteAddr(), nil).Client
	t.mu.Lock()
	if t.conns == nil {
		t.conns = map[netip.AddrPort]*turn{}
	}
	c := t.conns[client]
	if c == nil {
		c = new(turn)
		t.conns[client] = c
	}
	c.users++
	t.mu.Unlock()
	c.Lock()
	return func() {
		c.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if c.users--; c.users == 0 {
			delete(t.conns, client)
		}
	}
}
