package conn

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/mmsg"
	"github.com/coredns/coredns/plugin/pkg/nonblock"

	"golang.org/x/sys/unix"
)

// readers are those of one listener: one at first, and up to one for each processor while connections are many.
type readers struct {
	mu   sync.Mutex
	all  []*reader
	most int // that there may be; set with the first
}

// lights is how many connections of the process wait in readers.
var lights atomic.Int64

// enoughFor is how many connections each reader has before there is another one.
const enoughFor = 4

// least is the reader with the fewest connections, prefer of those that have as few.
func (rs *readers) least(prefer *reader) *reader {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	best := prefer
	for _, r := range rs.all {
		if r.n.Load() < best.n.Load() {
			best = r
		}
	}
	if best.n.Load() >= enoughFor && len(rs.all) < rs.most && !best.listener.stopping.Load() {
		if r := rs.add(best.listener); r != nil {
			return r
		}
	}
	return best
}

// first is the reader that accepts connections, nil if there can be none.
func (rs *readers) first(l *Listener) *reader {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.all) == 0 && !l.stopping.Load() {
		rs.most = runtime.GOMAXPROCS(0)
		rs.add(l)
	}
	if len(rs.all) == 0 {
		return nil
	}
	return rs.all[0]
}

// add has another reader read. mu is held.
func (rs *readers) add(l *Listener) *reader {
	set, err := mmsg.NewSet[readable]()
	if err != nil { // such as no file descriptors
		log.Warningf("Connections get goroutines at once: %v", err)
		return nil
	}
	r := &reader{listener: l, set: set, in: readBuffers.Get().(*[readSpace]byte), ended: make(chan struct{})}
	r.look = r.readAll
	rs.all = append(rs.all, r)
	l.done.Add(1)
	go r.run()
	return r
}

// stop has them give their connections goroutines, and end, and waits for that. The listener stops, and is not closed
// yet.
func (rs *readers) stop() {
	rs.mu.Lock()
	all := slices.Clone(rs.all)
	rs.mu.Unlock()
	for _, r := range all {
		r.set.SetDeadline(time.Now())
	}
	for _, r := range all {
		<-r.ended
	}
}

// holds reports whether one of them holds s.
func (rs *readers) holds(s *service.Service) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.all {
		if r.holder.Holds(s) {
			return true
		}
	}
	return false
}

// readable is what a reader waits for.
type readable interface{ read(r *reader) }

// reader serves connections without goroutines, by turns:
//
//	look: Poll ──▶ what has come on each ──▶ Turn ──▶ out
//	end:  counted ──▶ out is sent ──▶ known to a reader, or a Conn, or closed
//
// Only the reader reads, writes, and closes the descriptor of a connection that it knows; mu is for those who give it
// one, and for its times.
type reader struct {
	Turn
	listener *Listener
	set      *mmsg.Set[readable]
	holder   service.Holder
	in       *[readSpace]byte
	now      time.Time // when it has looked last
	answered []answered
	look     func(uintptr) bool // a method as value, made once
	n        atomic.Int32       // connections
	ended    chan struct{}

	mu     sync.Mutex
	asked  queue // connections that had a query
	silent queue // that had none
	wakes  int64 // when it looks for those that have been idle for too long, on service.Now's clock; 0 is never
}

// answered is a connection for which something is to be done when the turn is over.
type answered struct {
	c        *Light
	from, to int              // of the reader's replies: what is sent
	rest     *[readSpace]byte // has what was not served, nil for none
	at, end  int              // where in rest
	asked    bool             // there was something to serve
	stays    bool
}

// run reads until the listener stops.
func (r *reader) run() {
	defer r.listener.done.Done()
	defer close(r.ended)
	for !r.listener.stopping.Load() {
		if err := r.set.Wait(r.look); errors.Is(err, os.ErrDeadlineExceeded) {
			r.sweep(service.Now())
		}
	}
	r.now = time.Now()
	for _, x := range r.set.Close() {
		switch x := x.(type) {
		case *acceptor: // it is not closed before that; see Listener.Stop
			x.readRest(r)
		case *Light:
			x.toConn(r.listener, nil, 0, 0, nil)
		}
	}
}

// readAll serves what has come. It reports false to wait for more.
func (r *reader) readAll(uintptr) bool {
	for !r.listener.stopping.Load() {
		ready := r.set.Poll()
		if len(ready) == 0 {
			log.Idle()
			return false
		}
		r.now = time.Now()
		for _, x := range ready {
			x.read(r)
			if r.Full() {
				r.end()
			}
		}
		r.end()
		if now := service.At(r.now); r.due(now) {
			r.sweep(now)
		}
	}
	return true
}

// read implements readable.
func (c *Light) read(r *reader) {
	if c.reader == r { // else it has been closed in this turn, or its place is another's
		r.serve(c)
	}
}

// serve serves what has come on c. What is left is in r.in then, which goes along with the connection.
func (r *reader) serve(c *Light) {
	n, e := nonblock.Receive(c.fd, r.in[:])
	switch {
	case e == unix.EAGAIN:
		r.answered = append(r.answered, answered{c: c, stays: true})
		return
	case e != 0 || n == 0:
		c.close()
		return
	}
	c.last.Store(service.At(r.now))
	t := answered{c: c, from: len(r.out), asked: true}
	served := 0
	if s := r.enter(); s.Wire {
		served, t.stays = c.handler.Turn(&r.Turn, c, r.in[:n])
	}
	t.to = len(r.out)
	if served < n || c.Left != nil { // whose packet lies there
		t.rest, t.at, t.end, t.stays = r.in, served, n, false
		r.in = readBuffers.Get().(*[readSpace]byte)
	}
	r.answered = append(r.answered, t)
}

// enter begins a batch, unless one goes on.
func (r *reader) enter() *service.Service {
	if r.Service == nil {
		r.Service = r.holder.Hold(&r.listener.Seat)
	}
	r.Enter()
	return r.Service
}

// end ends the batch: replies are sent when all is counted, and connections go where they belong.
func (r *reader) end() {
	r.Leave()
	for i := range r.answered {
		r.finish(&r.answered[i])
	}
	clear(r.answered)
	r.answered = r.answered[:0]
	if r.out = r.out[:0]; cap(r.out) > 2*enoughReplies {
		r.out = nil
	}
	r.holder.Release()
	r.Service = nil
}

// finish does what is left of a turn.
func (r *reader) finish(t *answered) {
	c, out := t.c, r.out[t.from:t.to]
	if len(out) > 0 {
		n, e := nonblock.Send(c.fd, out)
		if e != 0 && e != unix.EAGAIN {
			t.drop()
			c.close()
			return
		}
		out = out[n:]
	}
	switch {
	case !t.stays || len(out) > 0:
		c.toConn(r.listener, t.rest, t.at, t.end, out)
	case c.reader == nil:
		if !r.listener.readers.least(r).take(c) {
			c.toConn(r.listener, nil, 0, 0, nil)
		}
	case t.asked:
		r.mu.Lock()
		c.queue.remove(c)
		r.asked.push(c)
		r.mu.Unlock()
	}
}

// drop gives back what a turn has of a connection that is closed in place of becoming a Conn.
func (t *answered) drop() {
	if t.c.Left != nil {
		t.c.Left.Free()
	}
}

// take makes c one of r's connections. Any reader may call it. It reports false if r takes no more.
func (r *reader) take(c *Light) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener.stopping.Load() {
		return false
	}
	q := &r.silent
	if c.Queries > 0 {
		q = &r.asked
	}
	q.push(c)
	until := c.last.Load() + int64(c.idleTime(r.listener.Now()))
	c.reader = r
	index, err := r.set.Add(c.fd, c) // from here on it is the reader's, which needs mu to let it go
	if err != nil {
		q.remove(c)
		c.reader = nil
		return false
	}
	c.index = index
	r.n.Add(1)
	lights.Add(1)
	if r.wakes == 0 || until < r.wakes {
		r.wakeAt(until)
	}
	return true
}

// forget takes c out, whose descriptor is closed after that, or stays open.
func (r *reader) forget(c *Light, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.queue.remove(c)
	if open {
		r.set.Forget(c.fd, c.index)
	} else {
		r.set.Remove(c.index)
	}
	r.n.Add(-1)
	lights.Add(-1)
	c.reader = nil
}

// wakeAt has the reader wake up then, or now if it is to end. mu is held.
func (r *reader) wakeAt(at int64) {
	r.wakes = at
	switch {
	case r.listener.stopping.Load():
		r.set.SetDeadline(time.Now())
	case at == 0:
		r.set.SetDeadline(time.Time{})
	default:
		r.set.SetDeadline(time.Now().Add(time.Duration(at - service.Now())))
	}
}

// due reports whether connections may have been idle for too long.
func (r *reader) due(now int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wakes != 0 && now >= r.wakes
}

// sweep closes connections that have been idle for too long.
func (r *reader) sweep(now int64) {
	s := r.listener.Now()
	for {
		c, reason := r.overdue(s, now)
		if c == nil {
			return
		}
		s.Limited(reason)
		c.close()
	}
}

// overdue is a connection that has been idle for too long, and the limit that ends it. If there is none, the reader
// wakes up when there may be one.
func (r *reader) overdue(s *service.Service, now int64) (c *Light, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := int64(0)
	for _, q := range []*queue{&r.silent, &r.asked} {
		c := q.first
		if c == nil {
			continue
		}
		switch until := c.last.Load() + int64(c.idleTime(s)); {
		case until > now:
			if next == 0 || until < next {
				next = until
			}
		case q == &r.silent:
			return c, "read_time"
		default:
			return c, "idle_time"
		}
	}
	r.wakeAt(next)
	return nil, ""
}
