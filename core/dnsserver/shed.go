package dnsserver

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// shedDropped counts what is dropped because a socket takes no more replies.
var shedDropped = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace, Subsystem: "shed", Name: "dropped_total",
	Help: "Counter of DNS queries and responses that were dropped because a UDP socket takes no more responses.",
}, []string{"server", "reason"})

// Shed reports whether a query that comes over UDP is to be dropped, since there are more replies than a socket of the listener
// can send; then it is counted. Plugins ask it; it is always false unless Config.Shed is set.
func (s *Server) Shed() bool {
	if s.fullStacks.Load() == 0 {
		return false
	}
	shedDropped.WithLabelValues(s.Addr, "query").Inc()
	return true
}

// sheds reports whether a block wants replies to be dropped rather than waited for.
func (s *Server) sheds() bool {
	for _, cfg := range s.configs {
		if cfg.Shed {
			return true
		}
	}
	return false
}

// shedSpace is how many replies of one socket wait at most.
const shedSpace = 1024

// replyStack has the replies that a socket does not take at once. Its goroutine sends them, the newest first: who has asked long ago does not wait any
// more. If there are too many, the oldest is dropped.
type replyStack struct {
	server *Server
	write  func(b, control []byte, to netip.AddrPort) error // waits until the socket takes it

	mu     sync.Mutex
	more   sync.Cond // there is a reply, or no more will come
	ring   []stackedReply
	first  int // the oldest
	n      int
	closed bool
	done   chan struct{} // closed when the goroutine has ended
}

// stackedReply is a reply on its way. Its memory is used again.
type stackedReply struct {
	b, control []byte
	to         netip.AddrPort
}

// newReplyStack begins a stack of size replies that write sends, until end.
func newReplyStack(s *Server, size int, write func(b, control []byte, to netip.AddrPort) error) *replyStack {
	r := &replyStack{server: s, write: write, ring: make([]stackedReply, size), done: make(chan struct{})}
	r.more.L = &r.mu
	go r.run()
	return r
}

// push puts a reply on top. Nothing of it is kept.
func (r *replyStack) push(b, control []byte, to netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.dropped()
		return
	}
	if r.n == len(r.ring) {
		r.first = (r.first + 1) % len(r.ring)
		r.n--
		r.dropped()
	} else if r.n == len(r.ring)-1 {
		r.server.fullStacks.Add(1)
	}
	q := &r.ring[(r.first+r.n)%len(r.ring)]
	q.b, q.control, q.to = append(q.b[:0], b...), append(q.control[:0], control...), to
	r.n++
	r.more.Signal()
}

func (r *replyStack) dropped() { shedDropped.WithLabelValues(r.server.Addr, "response").Inc() }

func (r *replyStack) run() {
	defer close(r.done)
	var mine stackedReply
	for {
		r.mu.Lock()
		for r.n == 0 && !r.closed {
			r.more.Wait()
		}
		if r.n == 0 {
			r.mu.Unlock()
			return
		}
		if r.n == len(r.ring) {
			r.server.fullStacks.Add(-1)
		}
		r.n--
		newest := &r.ring[(r.first+r.n)%len(r.ring)]
		mine, *newest = *newest, mine
		r.mu.Unlock()
		if r.write(mine.b, mine.control, mine.to) != nil {
			r.dropped()
		}
	}
}

// end takes no more replies, and lets the goroutine end when it has sent those that there are.
func (r *replyStack) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.more.Signal()
}

// stackCount is how many stacks of a server are full.
type stackCount = atomic.Int32
