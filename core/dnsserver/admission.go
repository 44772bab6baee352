package dnsserver

import (
	"container/heap"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// admission keeps the connections of one listener within its limits. A new connection always gets in as long as there is an
// idle one: when there are too many, one that has been idle for long gives way, of the client that has most of them. So who opens
// connections and does nothing with them, or little, only displaces himself. (RFC 7766 §6.2.2 lets servers close idle connections.)
type admission struct {
	server *Server
	limits *limits

	mu      sync.Mutex
	free    sync.Cond // a connection has left
	n       int
	clients map[netip.Prefix]*clientConns
	most    clientHeap // the same; the one with most connections first
	closed  bool
}

// clientConns are the connections of one client.
type clientConns struct {
	prefix netip.Prefix
	all    []*ticket
	next   int // where to look for an idle one next time
	place  int // in the heap
}

// ticket is the place of one connection among all of its listener.
type ticket struct {
	from  *admission
	conn  admitted
	of    *clientConns
	place int // in of.all
	gone  bool
}

// admitted is a connection that may have to give way.
type admitted interface {
	// idleSince is when the connection had a query last, or began, in nanoseconds of some clock that they all have in common;
	// it reports false if it has one now. It is called with a lock held.
	idleSince() (int64, bool)
	// evict ends the connection. The transport calls leave for it, as for each that ends.
	evict()
}

func newAdmission(s *Server) *admission {
	a := &admission{server: s, limits: &s.limits, clients: map[netip.Prefix]*clientConns{}}
	a.free.L = &a.mu
	return a
}

// started is the begin of the clock of idleSince.
var started = time.Now()

// sinceStart is the time on that clock.
func sinceStart() int64 { return int64(time.Since(started)) }

// enter admits conn, which comes from addr. If there are too many connections, and none of them is idle, wait says whether to wait for one to
// end. The ticket is nil if conn is not admitted.
func (a *admission) enter(addr netip.Addr, conn admitted, wait bool) *ticket {
	prefix := a.clientOf(addr)
	var victim *ticket
	a.mu.Lock()
	defer func() {
		a.mu.Unlock()
		if victim != nil {
			victim.conn.evict()
		}
	}()
	if c := a.clients[prefix]; c != nil && a.limits.client > 0 && len(c.all) >= a.limits.client {
		a.server.limited("client_connections")
		if victim = c.idle(); victim == nil {
			return nil
		}
		a.remove(victim)
	}
	for counted := false; a.limits.connections > 0 && a.n >= a.limits.connections; {
		if !counted {
			a.server.limited("connections")
			counted = true
		}
		if victim = a.most[0].idle(); victim != nil {
			a.remove(victim)
			break
		}
		if !wait || a.closed {
			return nil
		}
		again := time.AfterFunc(admissionRetry, a.free.Broadcast) // one of them may be idle then
		a.free.Wait()
		again.Stop()
	}
	t := &ticket{from: a, conn: conn}
	a.add(t, prefix)
	return t
}

// admissionRetry is how often idle connections are looked for while all seem to be busy.
const admissionRetry = 50 * time.Millisecond

// leave ends t; it may be called several times.
func (t *ticket) leave() {
	t.from.mu.Lock()
	t.from.remove(t)
	t.from.mu.Unlock()
}

// move counts t among the connections of the client addr from now on: a proxy has told for whom it is.
func (t *ticket) move(addr netip.Addr) {
	a := t.from
	a.mu.Lock()
	defer a.mu.Unlock()
	if !t.gone {
		a.remove(t)
		t.gone = false
		a.add(t, a.clientOf(addr))
	}
}

// close lets nobody wait any more.
func (a *admission) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.free.Broadcast()
}

// evictIdle ends the connections that have no query now.
func (a *admission) evictIdle() {
	var idle []*ticket
	a.mu.Lock()
	for _, c := range a.clients {
		for _, t := range c.all {
			if _, ok := t.conn.idleSince(); ok {
				idle = append(idle, t)
			}
		}
	}
	for _, t := range idle {
		a.remove(t)
	}
	a.mu.Unlock()
	for _, t := range idle {
		t.conn.evict()
	}
}

// crowded reports whether more than half of the places are taken.
func (a *admission) crowded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limits.connections > 0 && a.n > a.limits.connections/2
}

// add is called with mu held, as are all below.
func (a *admission) add(t *ticket, prefix netip.Prefix) {
	c := a.clients[prefix]
	if c == nil {
		c = &clientConns{prefix: prefix}
		a.clients[prefix] = c
		heap.Push(&a.most, c)
	}
	t.of, t.place = c, len(c.all)
	c.all = append(c.all, t)
	heap.Fix(&a.most, c.place)
	a.n++
	connections.WithLabelValues(a.server.Addr).Inc()
}

func (a *admission) remove(t *ticket) {
	if t.gone {
		return
	}
	t.gone = true
	c := t.of
	last := len(c.all) - 1
	c.all[t.place] = c.all[last]
	c.all[t.place].place = t.place
	c.all[last] = nil
	c.all = c.all[:last]
	if last == 0 {
		heap.Remove(&a.most, c.place)
		delete(a.clients, c.prefix)
	} else {
		heap.Fix(&a.most, c.place)
	}
	a.n--
	connections.WithLabelValues(a.server.Addr).Dec()
	a.free.Signal()
}

// clientOf is the prefix that makes a client of addr.
func (a *admission) clientOf(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := a.limits.bits6
	if addr.Is4() {
		bits = a.limits.bits4
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address that we know: all of these are one client
	}
	return p
}

// sample is how many connections of a client are looked at to find one that has been idle for long. Looking
// at all of them would let a flood of connections cost much.
const sample = 64

// idle is a connection of c that has been idle for long, nil if none was found.
func (c *clientConns) idle() (longest *ticket) {
	var since int64
	for range min(sample, len(c.all)) {
		c.next = (c.next + 1) % len(c.all)
		t := c.all[c.next]
		if at, ok := t.conn.idleSince(); ok && (longest == nil || at < since) {
			longest, since = t, at
		}
	}
	return longest
}

// clientHeap implements heap.Interface.
type clientHeap []*clientConns

func (h clientHeap) Len() int           { return len(h) }
func (h clientHeap) Less(i, j int) bool { return len(h[i].all) > len(h[j].all) }
func (h clientHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *clientHeap) Push(x any) {
	c := x.(*clientConns)
	c.place = len(*h)
	*h = append(*h, c)
}
func (h *clientHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}

// addrOf is the address of a socket's peer, without its port.
func addrOf(a net.Addr) netip.Addr { return wire.PeerOf(a, nil).Client.Addr() }
