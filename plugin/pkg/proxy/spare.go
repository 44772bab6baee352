package proxy

import (
	"net/netip"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/udpsockets"
)

// This file keeps sockets of queries to Peers for the next ones. Each query has a port of its own all the same (RFC
// 5452 §9.2): a socket gives its port back with the exchange, and is given another with the next, at
// random, by the system. What is saved is to make a descriptor, to watch it and to close it, three quarters of the
// cost of a port. A datagram that was on its way to the former port is known by its sender: see engine.takeAll.

// spareTime is how long a socket waits for its next query, in nanoseconds.
const spareTime = int64(10 * time.Second)

// spareBudget bounds the sockets that wait for their next query, in the whole process.
var spareBudget = budget{limit: max(peerBudget.limit/8, 1)}

// spares is sockets without a port. The zero value has none.
type spares struct {
	mu      sync.Mutex
	all     map[spareKind][]*udpSocket
	n       int
	stopped bool
}

// spareKind is what a socket can not change.
type spareKind struct {
	loop *eventloop.Loop // that reads it, nil for the own goroutine
	from netip.Addr      // that it is bound to
	six  bool            // its family is IPv6
}

// spareKindOf is which sockets x may leave from, begun in loop.
func spareKindOf(x *Exchange, loop *eventloop.Loop) spareKind {
	if loop != nil && loop.Watcher() == nil {
		loop = nil
	}
	return spareKind{loop, x.From, x.To.source.Addr().Is6()}
}

// take is the socket of a kind that was put last, nil if there is none.
func (s *spares) take(k spareKind) *udpSocket {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all[k]
	n := len(all) - 1
	if n < 0 {
		return nil
	}
	u := all[n]
	all[n] = nil
	s.all[k] = all[:n]
	s.n--
	spareBudget.give()
	return u
}

// put keeps a socket, or reports false.
func (s *spares) put(u *udpSocket) bool {
	if !spareBudget.take(false) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		spareBudget.give()
		return false
	}
	if s.all == nil {
		s.all = map[spareKind][]*udpSocket{}
	}
	s.all[u.kind] = append(s.all[u.kind], u)
	s.n++
	return true
}

// reap takes out what was not used since a time; stop, all there is, and nothing is put any more.
func (s *spares) reap(since int64) (idle []*udpSocket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, all := range s.all {
		n := 0
		for n < len(all) && all[n].used < since { // the first was put first
			n++
		}
		idle = append(idle, all[:n]...)
		if n == len(all) {
			delete(s.all, k)
		} else {
			s.all[k] = append([]*udpSocket(nil), all[n:]...)
		}
		s.n -= n
		spareBudget.used.Add(-int64(n))
	}
	return idle
}

func (s *spares) stop() []*udpSocket {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	return s.reap(never)
}

// count is how many there are.
func (s *spares) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// Waits implements udpsockets.Receiver: it reports whether a query is under way on s.
func (s *udpSocket) Waits() bool {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	return s.pending.n > 0
}

// spent is a socket whose exchange has had its reply.
type spent struct{ *udpSocket }

// close keeps the socket for another query, without its port, or closes it.
func (s spent) close() {
	if m, ok := s.Socket.(udpsockets.Movable); ok && m.Leave() == nil && s.engine.spares.put(s.udpSocket) {
		return
	}
	unused(s).close()
}

// unused is a socket that nobody needs any more; it has its place in the budgets.
type unused struct{ *udpSocket }

func (s unused) close() {
	givePeerSocket()
	s.udpSocket.close()
}
