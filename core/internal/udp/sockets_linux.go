package udp

import (
	"net"
	"net/netip"
	"runtime"
	"sync"

	"github.com/coredns/coredns/core/internal/reusegroup"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
)

// extra has the sockets that servers opened beside the one that caddy knows, by their address. Caddy hands that one
// over in a reload; these pass from the old server to the new one here, because a socket that is closed loses what
// is queued in it.
var extra extraTable

type extraTable struct {
	mu      sync.Mutex
	sockets map[netip.AddrPort]*extraSockets // guarded by mu
}

// put is called with mu held.
func (t *extraTable) put(e *extraSockets) {
	if t.sockets == nil {
		t.sockets = map[netip.AddrPort]*extraSockets{}
	}
	t.sockets[e.addr] = e
}

// extraSockets are those of one address. Each server that uses them has descriptors of its own, which it closes when
// it ends; the sockets stay open as long as anybody uses them.
type extraSockets struct {
	addr  netip.AddrPort
	conns []*net.UDPConn
	users int               // servers that have descriptors of them
	stays int               // those of users that go on to read
	group *reusegroup.Group // nil if there are no such sockets, or the system spreads the datagrams
}

// open makes t serve conn and further sockets at its address, one for each core. Several Servers at one
// address, as multisocket makes them, have one socket each.
func (t *Transport) open(conn *net.UDPConn) {
	first, err := newBatchedSocket(conn)
	if err != nil {
		log.Warningf("Reading single packets from %s: %v", conn.LocalAddr(), err)
		return
	}
	t.sockets = []batchSocket{first}
	first.dropped = t.service.Dropped
	if t.Shed {
		first.shed(t)
	}
	if t.One {
		return
	}
	for _, c := range t.takeExtra(conn, runtime.GOMAXPROCS(0)-1) {
		s, err := newBatchedSocket(c)
		if err != nil {
			log.Warningf("No further socket for %s: %v", conn.LocalAddr(), err)
			c.Close()
			continue
		}
		s.dropped = t.service.Dropped
		if t.Shed {
			s.shed(t)
		}
		s.group = t.handed.group.Join(s.fd)
		t.sockets = append(t.sockets, s)
	}
	first.group = t.handed.group.Join(first.fd)
}

// takeExtra returns n more sockets at the address of conn, or as many as can be had: those that another server
// has there, such as the one whose place this takes, and new ones.
func (t *Transport) takeExtra(conn *net.UDPConn, n int) (mine []*net.UDPConn) {
	extra.mu.Lock()
	defer extra.mu.Unlock()
	addr := conn.LocalAddr().(*net.UDPAddr)
	ap := localOf(conn)
	all := extra.sockets[ap]
	if all == nil {
		all = &extraSockets{addr: ap}
	}
	// The server before us may have run with fewer processors.
	for len(all.conns) < n {
		c, err := reuseport.ListenPacket(network(addr), addr.String())
		if err != nil {
			break // somebody has the address for himself
		}
		all.conns = append(all.conns, c.(*net.UDPConn))
	}
	if all.group == nil && len(all.conns) > 0 && Consolidate {
		all.group = reusegroup.New(all.conns[0], t.Others)
	}
	for _, c := range all.conns {
		// Each server closes its own descriptor; the socket lasts as long as any of them.
		if dup := duplicate(c); dup != nil {
			mine = append(mine, dup)
		}
	}
	extra.put(all)
	all.users++
	all.stays++
	t.handed = all
	return mine
}

// OpenEarly opens the further sockets of an address before its server has the first one: for a process that takes the
// place of another one, before that has its sockets leave. The kernel would make a socket that is bound later share
// datagrams with those that have left. DropUnused closes what no server has taken.
func OpenEarly(addr string) {
	extra.mu.Lock()
	defer extra.mu.Unlock()
	var all *extraSockets
	for range runtime.GOMAXPROCS(0) - 1 {
		c, err := reuseport.ListenPacket("udp", addr)
		if err != nil {
			break
		}
		conn := c.(*net.UDPConn)
		if all == nil {
			all = &extraSockets{addr: localOf(conn)}
		}
		all.conns = append(all.conns, conn)
	}
	if all != nil {
		extra.put(all)
	}
}

// DropUnused closes sockets that were opened early for servers that do not use them.
func DropUnused() {
	extra.mu.Lock()
	defer extra.mu.Unlock()
	for addr, e := range extra.sockets {
		if e.users == 0 {
			delete(extra.sockets, addr)
			e.close()
		}
	}
}

// localOf is the address of a socket, as sockets are found by it: IPv4 is IPv4, also where the socket is one of
// IPv6.
func localOf(conn *net.UDPConn) netip.AddrPort {
	ap := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// network makes a socket for an address be of the same family as the first one was.
func network(addr *net.UDPAddr) string {
	if addr.IP.To4() != nil {
		return "udp4"
	}
	return "udp"
}

// quit is called by each user when he is about to read no more. It reports whether nobody else goes on: those who have
// quit may have descriptors for long yet, for replies that are late. e may be nil.
func (e *extraSockets) quit() (last bool) {
	if e == nil {
		return false
	}
	extra.mu.Lock()
	defer extra.mu.Unlock()
	if e.stays--; e.stays > 0 {
		return false
	}
	e.group.Spread() // another process may go on at this address
	return true
}

// giveUp is called by each user when he has closed his descriptors. The last one closes the sockets.
func (e *extraSockets) giveUp() {
	if e == nil {
		return
	}
	extra.mu.Lock()
	defer extra.mu.Unlock()
	if e.users--; e.users > 0 {
		return
	}
	delete(extra.sockets, e.addr)
	e.group.Spread() // another process may go on at this address
	e.close()
}

func (e *extraSockets) close() {
	for _, c := range e.conns {
		c.Close()
	}
}
