package exec

import (
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// A run has what its caller says of the query, and nothing of the run before.
func TestRun(t *testing.T) {
	loop := BorrowLoop()
	defer loop.Leave()
	x, deadline := newExchange(), time.Now().Add(time.Minute)
	b := packet(t, "www.example.org.")
	r := NewRun()
	defer r.Free()
	for _, tc := range []struct {
		name     string
		loop     *eventloop.Loop
		ended    eventloop.Exchange
		deadline time.Time
	}{
		{"in a loop", loop, nil, time.Time{}},
		{"where it may wait", nil, nil, deadline},
		{"after an exchange", loop, x, time.Time{}},
		{"after an exchange, where it may wait", nil, x, deadline},
		{"anew", loop, nil, time.Time{}},
	} {
		calls := 0
		s := serviceOf(t, &decider{wire: func(w *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
			calls++
			if q.Loop() != tc.loop || q.MayBlock() != (tc.loop == nil) || q.Awaited() != tc.ended || q.Deadline() != tc.deadline || q.Peer != peer {
				t.Errorf("%s: loop %p, may block %t, awaited %v, deadline %v, peer %v", tc.name, q.Loop(), q.MayBlock(), q.Awaited(), q.Deadline(), q.Peer)
			}
			if w.Holds() || len(w.Options()) > 0 {
				t.Errorf("%s: the reply is not empty", tc.name)
			}
			w.Begin(q)
			w.AddEDE(1, "left")
			return w.Bytes(), wire.Done
		}})
		r.Deadline = tc.deadline
		if reply, out := r.Serve(s, b, peer, tc.loop, tc.ended); out != wire.Done || len(reply) == 0 || calls != 1 {
			t.Errorf("%s: %v, %x, %d calls", tc.name, out, reply, calls)
		}
	}
	s := serviceOf(t, &decider{})
	for name, b := range map[string][]byte{"nothing": nil, "cut": b[:len(b)-1], "an answer": append([]byte{0, 0, 0x80, 0}, b[4:]...)} {
		if reply, out := r.Serve(s, b, peer, loop, nil); out != wire.Unpack || reply != nil {
			t.Errorf("%s: %v, %x", name, out, reply)
		}
	}
}

// A Run that was given back has no deadline.
func TestRunIsUsedAgain(t *testing.T) {
	for range 100 {
		r := NewRun()
		if !r.Deadline.IsZero() {
			t.Fatal("it has the deadline of another query")
		}
		r.Deadline = time.Now()
		r.Free()
	}
}

// No loop has two users, and when all are in use, the next one waits for one.
func TestBorrowLoop(t *testing.T) {
	most := len(sharedLoops()) // made by whichever test was first, maybe with one processor
	lent := map[*eventloop.Loop]bool{}
	for range most {
		l := BorrowLoop()
		if lent[l] {
			t.Fatal("lent twice")
		}
		lent[l] = true
	}
	got := make(chan *eventloop.Loop)
	go func() { got <- BorrowLoop() }()
	for l := range lent {
		l.Leave()
	}
	l := <-got
	if !lent[l] {
		t.Error("another loop")
	}
	l.Leave()
}

func TestRunDoesNotAllocate(t *testing.T) {
	s := serviceOf(t, &decider{wire: func(w *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
		w.Begin(q)
		return w.Bytes(), wire.Done
	}})
	b := packet(t, "www.example.org.")
	if n := testing.AllocsPerRun(100, func() {
		var batch Batch
		batch.Enter()
		if reply, _ := batch.Run.Serve(s, b, peer, batch.Loop, nil); reply == nil {
			t.Fatal("no reply")
		}
		batch.Leave()
	}); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

// batched counts the ends of batches.
type batched struct {
	ends int
	took time.Duration
}

func (b *batched) EndBatch(took time.Duration) {
	b.ends++
	b.took = took
}

func TestBatch(t *testing.T) {
	var b Batch
	b.Leave() // nothing was begun
	b.Enter()
	loop, run := b.Loop, b.Run
	if loop == nil || run == nil || b.Began.IsZero() {
		t.Fatalf("%+v", b)
	}
	b.Enter()
	if b.Loop != loop || b.Run != run {
		t.Error("a batch that goes on was begun anew")
	}
	if loop.TryEnter() {
		t.Error("others are in its loop")
	}
	var told batched
	loop.Touch(&told)
	b.Leave()
	if told.ends != 1 || told.took <= 0 || b.Loop != nil || b.Run != nil {
		t.Errorf("%+v, %+v", told, b)
	}
	if !loop.TryEnter() {
		t.Fatal("the loop was not left")
	}
	loop.Leave()

	b.Enter()
	loop, run = b.Loop, b.Run
	if got := b.LeaveWith(); got != run || b.Loop != nil || b.Run != nil {
		t.Errorf("%p, %+v", got, b)
	}
	if !loop.TryEnter() {
		t.Fatal("the loop was not left")
	}
	loop.Leave()
	run.Free()
}
