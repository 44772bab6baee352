package conn

import (
	"container/heap"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Admission keeps the connections of one listener within its limits. When there are too many, one that has been
// idle for idleTime gives way to a new one (RFC 7766 §6.2.2): of the client that has most of them, if that has such
// a one. So who opens connections and does nothing with them, or little, only displaces himself. A connection that
// is new, or at work, is not cut: where there is no other, the new one waits, or is refused if its client has as
// many as anybody. Of a client with half of all places one is new for less time, see spared.
type Admission struct {
	seat *service.Seat // whose server has the limits
	now  func() int64  // the clock of IdleSince

	mu      sync.Mutex
	free    sync.Cond // a connection has left
	n       int
	leaving int // connections that have given way, and end
	clients map[netip.Prefix]*clientConns
	most    clientHeap // the same; the one with most connections first
	closed  bool
}

// connections is how many there are.
var connections = promauto.NewGaugeVec(prometheus.GaugeOpts{
	Namespace: plugin.Namespace, Subsystem: "dns", Name: "connections",
	Help: "Number of open connections.",
}, []string{"server"})

// clientConns are the connections of one client.
type clientConns struct {
	prefix netip.Prefix
	all    []*Slot
	next   int // where to look for an idle one next time
	place  int // in the heap
}

// Slot is the place of one connection among all of its listener.
type Slot struct {
	from  *Admission
	conn  Evictable
	of    *clientConns
	place int   // in of.all
	came  int64 // when it had waited for its place, 0 if it had not to: no query could be read before that
	gone  bool
	ends  bool // it has given way, and is counted as leaving
}

// Evictable is a connection that may have to give way.
type Evictable interface {
	// IdleSince is when the connection had a query last, or began, in nanoseconds of some clock that they all have
	// in common; it reports false if it has one now. It is called with a lock held.
	IdleSince() (int64, bool)
	// Evict ends the connection: now, or when its client knows, and what is on its way is answered. The transport
	// calls Leave for it, as for each that ends.
	Evict(now bool)
}

// NewAdmission is an Admission with the limits of who sits at p.
func NewAdmission(p *service.Seat) *Admission {
	a := &Admission{seat: p, now: service.Now, clients: map[netip.Prefix]*clientConns{}}
	a.free.L = &a.mu
	return a
}

func (a *Admission) service() *service.Service { return a.seat.Now() }
func (a *Admission) limits() *service.Limits   { return &a.seat.Now().Limits }

// idleTime is how long a connection that has to give way has had no query. Tests make it shorter.
var idleTime = time.Second

// Enter admits conn, which comes from addr. If there are too many connections, and none of them has to give way, it
// waits until that changes, for so long at most. The Slot is nil if conn is not Evictable.
func (a *Admission) Enter(addr netip.Addr, conn Evictable, wait time.Duration) *Slot {
	prefix := a.clientOf(addr)
	var victims []victim // two, if the limits were higher before a reload
	evict := func(t *Slot) { victims = append(victims, a.giveWay(t)) }
	a.mu.Lock()
	defer func() {
		a.mu.Unlock()
		for _, v := range victims {
			v.conn.Evict(v.now)
		}
	}()
	if c := a.clients[prefix]; c != nil && a.limits().Client > 0 && len(c.all) >= a.limits().Client {
		a.service().Limited("client_connections")
		t := a.idle(c, idleTime)
		if t == nil {
			return nil
		}
		evict(t)
	}
	began, t := a.now(), &Slot{from: a, conn: conn}
	for counted := false; a.limits().Connections > 0 && a.n >= a.limits().Connections; {
		if !counted {
			a.service().Limited("connections")
			counted = true
		}
		if v := a.victim(); v != nil {
			evict(v)
			break
		}
		if time.Duration(a.now()-began) >= wait || a.closed || a.greedy(prefix) {
			return nil
		}
		again := time.AfterFunc(admissionRetry, a.free.Broadcast) // one of them may be idle then
		a.free.Wait()
		again.Stop()
		t.came = a.now()
	}
	a.add(t, prefix)
	return t
}

// victim is a connection that gives way, and whether that is now.
type victim struct {
	conn Evictable
	now  bool
}

// giveWay takes the place of t from it. For a moment there are more connections than places, a quarter at most, or of
// those of a client where nothing else is limited: who would hold up the end of his connections gains nothing. It is
// called with mu held.
func (a *Admission) giveWay(t *Slot) victim {
	a.remove(t)
	places := a.limits().Connections
	if places == 0 {
		places = a.limits().Client
	}
	if t.ends = a.leaving < max(1, places/4); t.ends {
		a.leaving++
	}
	return victim{t.conn, !t.ends}
}

// greedy reports whether the client with that prefix has as many connections as anybody, where clients are told
// apart. It is called with mu held.
func (a *Admission) greedy(prefix netip.Prefix) bool {
	c := a.clients[prefix]
	return a.limits().Client > 0 && c != nil && len(c.all) >= len(a.most[0].all)
}

// victim is the connection that gives way to a new one, nil if there is none. It is called with mu held.
func (a *Admission) victim() *Slot {
	for _, c := range a.most[:min(sample, len(a.most))] { // the first has most, and those after it have many
		if t := a.idle(c, a.spared(c)); t != nil {
			return t
		}
	}
	return nil
}

// spared is how long a connection of c that has to give way has had no query. New ones are accepted in the order in
// which they came: if each connection of who has most places were spared for idleTime, whoever opens more than that in
// the time would have all others wait behind him. It is called with mu held.
func (a *Admission) spared(c *clientConns) time.Duration {
	if 2*len(c.all) >= a.limits().Connections {
		return idleTime / 20
	}
	return idleTime
}

// Forever is as long as it takes.
const Forever time.Duration = math.MaxInt64

// Patience is how long a transport waits for a place that cannot wait for long: until the connections that there
// are need not be spared.
func Patience() time.Duration { return idleTime + 2*admissionRetry }

// admissionRetry is how often idle connections are looked for while all seem to be busy.
const admissionRetry = 50 * time.Millisecond

// Leave ends t; it may be called several times.
func (t *Slot) Leave() {
	t.from.mu.Lock()
	defer t.from.mu.Unlock()
	t.from.remove(t)
	if t.ends {
		t.ends = false
		t.from.leaving--
	}
}

// idleSince is IdleSince of the connection: it begins when it has its place.
func (t *Slot) idleSince() (int64, bool) {
	at, ok := t.conn.IdleSince()
	return max(at, t.came), ok
}

// move counts t among the connections of another client from now on: a proxy has told for whom it is.
func (t *Slot) move(client net.Addr) {
	a := t.from
	a.mu.Lock()
	defer a.mu.Unlock()
	if !t.gone {
		a.remove(t)
		t.gone = false
		a.add(t, a.clientOf(wire.AddrOf(client)))
	}
}

// become makes conn the connection of t from now on.
func (t *Slot) become(conn Evictable) {
	t.from.mu.Lock()
	t.conn = conn
	t.from.mu.Unlock()
}

// Close lets nobody wait any more.
func (a *Admission) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.free.Broadcast()
}

// Each calls f for each connection that has a place.
func (a *Admission) Each(f func(c any)) {
	a.mu.Lock()
	var conns []Evictable
	for _, c := range a.clients {
		for _, t := range c.all {
			conns = append(conns, t.conn)
		}
	}
	a.mu.Unlock()
	for _, c := range conns {
		f(c)
	}
}

// EvictIdle ends the connections that have had no query for so long: the reply to the last one is on its way then. One
// that has a method Owed is not ended while that is true.
func (a *Admission) EvictIdle(d time.Duration) {
	var idle []*Slot
	a.mu.Lock()
	until := a.now() - int64(d)
	for _, c := range a.clients {
		for _, t := range c.all {
			owes, may := t.conn.(interface{ Owed() bool })
			if at, ok := t.idleSince(); ok && at <= until && (!may || !owes.Owed()) {
				idle = append(idle, t)
			}
		}
	}
	conns := make([]Evictable, len(idle))
	for i, t := range idle {
		conns[i] = t.conn
		a.remove(t)
	}
	a.mu.Unlock()
	for _, c := range conns {
		c.Evict(true)
	}
}

// Full reports whether all places are taken.
func (a *Admission) Full() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limits().Connections > 0 && a.n >= a.limits().Connections
}

// Len is how many places are taken.
func (a *Admission) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

// HalfFull reports whether more than half of the places are taken.
func (a *Admission) HalfFull() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limits().Connections > 0 && a.n > a.limits().Connections/2
}

// add is called with mu held, as are all below.
func (a *Admission) add(t *Slot, prefix netip.Prefix) {
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
	connections.WithLabelValues(a.service().Label).Inc()
}

func (a *Admission) remove(t *Slot) {
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
	connections.WithLabelValues(a.service().Label).Dec()
	a.free.Signal()
}

// clientOf is the prefix that makes a client of addr.
func (a *Admission) clientOf(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := a.limits().Bits6
	if addr.Is4() {
		bits = a.limits().Bits4
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

// idle is a connection of c that has been idle for so long, the longest of those that were looked at, nil if there is
// none.
func (a *Admission) idle(c *clientConns, spared time.Duration) (longest *Slot) {
	since := a.now() - int64(spared) + 1
	for range min(sample, len(c.all)) {
		c.next = (c.next + 1) % len(c.all)
		t := c.all[c.next]
		if at, ok := t.idleSince(); ok && at < since {
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
