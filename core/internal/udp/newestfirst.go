package udp

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

// What is dropped, as the label reason says it.
const shedQuery, shedResponse = "query", "response"

// CountShedFromZero makes the counters of a listener with that label: who watches them sees the first step, too.
func CountShedFromZero(label string) {
	shedDropped.WithLabelValues(label, shedQuery)
	shedDropped.WithLabelValues(label, shedResponse)
}

// ShedQuery counts a query that is dropped since there are more replies than a socket can send.
func ShedQuery(label string) { shedDropped.WithLabelValues(label, shedQuery).Inc() }

// shedSpace is how many replies of one socket wait at most.
const shedSpace = 1024

// newestFirst has the replies that a socket does not take at once. Its goroutine sends them, the newest first: who
// has asked long ago does not wait any more. If there are too many, the oldest is dropped.
type newestFirst struct {
	label     string                                           // of the listener, in metrics
	saturated *atomic.Int32                                    // counts queues that are full
	write     func(b, control []byte, to netip.AddrPort) error // waits until the socket takes it

	mu     sync.Mutex
	more   sync.Cond // there is a reply, or no more will come
	ring   []queuedReply
	first  int // the oldest
	n      int
	closed bool
	done   chan struct{} // closed when the goroutine has ended
}

// queuedReply is a reply on its way. Its memory is used again.
type queuedReply struct {
	b, control []byte
	to         netip.AddrPort
}

// newNewestFirst begins a queue for size replies that write sends, until end.
func newNewestFirst(label string, saturated *atomic.Int32, size int, write func(b, control []byte, to netip.AddrPort) error) *newestFirst {
	r := &newestFirst{label: label, saturated: saturated, write: write, ring: make([]queuedReply, size), done: make(chan struct{})}
	r.more.L = &r.mu
	go r.run()
	return r
}

// push puts a reply on top. Nothing of it is kept.
func (r *newestFirst) push(b, control []byte, to netip.AddrPort) {
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
		r.saturated.Add(1)
	}
	q := &r.ring[(r.first+r.n)%len(r.ring)]
	q.b, q.control, q.to = append(q.b[:0], b...), append(q.control[:0], control...), to
	r.n++
	r.more.Signal()
}

func (r *newestFirst) dropped() { shedDropped.WithLabelValues(r.label, shedResponse).Inc() }

func (r *newestFirst) run() {
	defer close(r.done)
	var mine queuedReply
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
			r.saturated.Add(-1)
		}
		r.n--
		newest := &r.ring[(r.first+r.n)%len(r.ring)]
		// Exchanged, so that the memory of both is used again.
		mine, *newest = *newest, mine
		r.mu.Unlock()
		if r.write(mine.b, mine.control, mine.to) != nil {
			r.dropped()
		}
	}
}

// end takes no more replies, and lets the goroutine end when it has sent those that there are.
func (r *newestFirst) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.more.Signal()
}
