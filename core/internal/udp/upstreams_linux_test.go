package udp

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/test/clients"

	"golang.org/x/sys/unix"
)

// watched is a descriptor that a loop reads.
type watched struct {
	fd       int
	lane     *eventloop.Loop
	index    int32
	read     chan bool // whether it was in its loop
	orphaned atomic.Int32
}

func (w *watched) ReadIn(l *eventloop.Loop) {
	var buf [100]byte
	for {
		if n, err := unix.Read(w.fd, buf[:]); n <= 0 || err != nil {
			return
		}
		w.read <- l == w.lane
	}
}

func (w *watched) Orphaned() { w.orphaned.Add(1) }

// watchHandler has the loop of each query read a descriptor that is made for it, and answers.
type watchHandler struct {
	coretest.Lane
	t       *testing.T
	mu      sync.Mutex
	all     []*watched
	writers []int
}

func (h *watchHandler) WireSelf() plugin.Handler { return h }

func (h *watchHandler) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		h.t.Error(err)
	}
	d := &watched{fd: pipe[0], lane: q.Loop(), read: make(chan bool, 10)}
	var err error
	if d.index, err = d.lane.Watcher().Watch(d.fd, d); err != nil {
		h.t.Error(err)
	}
	h.mu.Lock()
	h.all, h.writers = append(h.all, d), append(h.writers, pipe[1])
	h.mu.Unlock()
	h.t.Cleanup(func() { unix.Close(pipe[0]); unix.Close(pipe[1]) })
	return h.Lane.ServeWire(ctx, w, q)
}

// arrives has something come on the i-th descriptor, and reports whether it was read in its loop, and soon.
func (h *watchHandler) arrives(i int) bool {
	unix.Write(h.writers[i], []byte("x"))
	select {
	case in := <-h.all[i].read:
		return in
	case <-time.After(clients.AskTime):
		h.t.Error("was not read")
		return false
	}
}

// A loop reads what its loop watches while it waits, between its own queries, and after other descriptors have gone.
func TestLoopReadsOthers(t *testing.T) {
	h := &watchHandler{t: t}
	s := serving(t, h, Options{})
	for range 3 {
		ask(t, s.addr, "local.", nil)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for range 2 {
		for i := range h.all {
			if !h.arrives(i) {
				t.Errorf("descriptor %d was read elsewhere", i)
			}
		}
	}
	for _, d := range h.all[1:] {
		d.lane.Watcher().Unwatch(d.index)
	}
	if !h.arrives(0) {
		t.Error("was read elsewhere after others went")
	}
	h.all[0].lane.Watcher().Unwatch(h.all[0].index)
	o := h.all[0].lane.Watcher().(*upstreamSockets)
	for end := time.Now().Add(5 * closedCheck); ; time.Sleep(closedCheck / 10) { // then the socket is all that is waited for
		o.own.wakeMu.Lock()
		none := o.set == nil
		o.own.wakeMu.Unlock()
		if none {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the set stays")
		}
	}
	h.mu.Unlock()
	ask(t, s.addr, "local.", nil) // and it can begin anew
	h.mu.Lock()
	if i := len(h.all) - 1; !h.arrives(i) {
		t.Error("was read elsewhere")
	}
	if n := h.all[0].orphaned.Load(); n != 0 {
		t.Errorf("%d told that the loop has ended", n)
	}
}

// At the end of a loop, those whose descriptors it read are told, and nobody else. It does not wait for the next look
// at its socket.
func TestLoopEndsWithOthers(t *testing.T) {
	quickest := time.Minute
	for range 10 { // of which one is not held up by other processes
		if quickest = min(quickest, loopEndsWithOthers(t)); quickest < closedCheck/2 {
			return
		}
	}
	t.Errorf("the end took %s", quickest)
}

func loopEndsWithOthers(t *testing.T) (took time.Duration) {
	h := &watchHandler{t: t}
	s := serving(t, h, Options{})
	ask(t, s.addr, "local.", nil)
	ask(t, s.addr, "local.", nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[0].lane.Watcher().Unwatch(h.all[0].index)
	began := time.Now()
	if err := s.end(); err != nil {
		t.Error(err)
	}
	took = time.Since(began)
	if gone, left := h.all[0].orphaned.Load(), h.all[1].orphaned.Load(); gone != 0 || left != 1 {
		t.Errorf("told %d times and %d times", gone, left)
	}
	h.all[1].lane.Watcher().Unwatch(h.all[1].index) // too late does no harm
	if _, err := h.all[1].lane.Watcher().Watch(h.all[1].fd, h.all[1]); err == nil {
		t.Error("watches after the end")
	}
	return took
}

// Who closes a socket that was given to be served ends the serving, also if other descriptors are read with it.
func TestSocketIsClosedUnderLoop(t *testing.T) {
	h := &watchHandler{t: t}
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := New(coretest.Service(t, coretest.Label(t), h), p, Options{One: true}) // so that there is but the one that is given
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		u.Serve()
	}()
	ask(t, p.LocalAddr().String(), "local.", nil)
	p.Close()
	select {
	case <-ended:
	case <-time.After(3 * closedCheck):
		t.Error("goes on")
	}
	u.Stop(t.Context())
	if n := h.all[0].orphaned.Load(); n != 1 {
		t.Errorf("told %d times that the loop has ended", n)
	}
}
