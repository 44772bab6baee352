package recurse

import (
	"net/netip"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file bounds how many queries of one client wait, so that replies to many forged queries cannot be saved up for one
// moment (DNSBomb, CVE-2024-33655), nor one client take all places. A client is an IPv4 address, or an IPv6 /56.

const (
	waitingPerClient = 1000
	waitingWithProof = 10 * waitingPerClient // of one with a good cookie, or over a connection: it is who it says
)

// clients is how many queries of each client wait. The zero value has none.
type clients struct {
	mu  sync.Mutex
	all map[netip.Addr]int32
}

// clientOf is the client that q comes from.
func clientOf(q *wire.Query) netip.Addr { return advice.ClientOf(q.Peer.Client.Addr()) }

// take counts q with its client, and reports false if there are most already.
func (c *clients) take(q *wire.Query) (client netip.Addr, ok bool) {
	client, most := clientOf(q), int32(waitingPerClient)
	if q.Cookie() == wire.CookieValid || q.Stream() {
		most = waitingWithProof
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.all[client]
	if n >= most {
		return client, false
	}
	if c.all == nil {
		c.all = map[netip.Addr]int32{}
	}
	c.all[client] = n + 1
	return client, true
}

// give forgets one query of each of the clients.
func (c *clients) give(all []netip.Addr) {
	if len(all) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range all {
		if n := c.all[a] - 1; n > 0 {
			c.all[a] = n
		} else {
			delete(c.all, a)
		}
	}
}

// join has j give the place of a query's client back when it tells its result; what becomes of the query meanwhile does
// not matter.
func (j *job) join(client netip.Addr) {
	j.mu.Lock()
	if !j.told {
		j.waiting = append(j.waiting, client)
		j.mu.Unlock()
		return
	}
	j.mu.Unlock()
	j.clients.give([]netip.Addr{client})
}

// tell notes that the result stands, and returns whose queries wait no more. mu is held.
func (j *job) tell() (waited []netip.Addr) {
	j.told = true
	waited, j.waiting = j.waiting, nil
	return waited
}
