package exec

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// source keeps what becomes of a query.
type source struct {
	scratch *Waiting
	serve   func() // in the message lane

	mu     sync.Mutex
	events []string
	over   chan struct{} // closed by End
}

func newSource() *source { return &source{over: make(chan struct{})} }

func (s *source) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

func (s *source) ServeMessage(_ *service.Service, packet []byte) {
	s.note("message %s", nameIn(packet))
	if s.serve != nil {
		s.serve()
	}
}
func (s *source) Reply(b []byte, mayWait bool) { s.note("reply %s, may wait: %t", b, mayWait) }
func (s *source) Begin(serves *service.Service) {
	serves.Inflight.Add()
	s.note("begin")
}
func (s *source) End(serves *service.Service) {
	s.note("end")
	serves.Inflight.Done()
	close(s.over)
}
func (s *source) Scratch() *Waiting { return s.scratch }

// told is what became of the query.
func (s *source) told() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.events, "; ")
}

// nameIn is the first label that a packet asks for.
func nameIn(packet []byte) string {
	var q wire.Query
	if !q.Parse(packet) {
		return "no query"
	}
	return string(wire.FirstLabel(q.Lower()))
}

// script has the chain do in each run what the test says: the runs' outcomes are given, a letter each. It tells where
// it was run.
//
//	u, b  Unpack, Block
//	p, s  Park on a new exchange, on the same one again
//	d, n  Done with a reply, and without
type script struct {
	t         *testing.T
	outcomes  string
	runs      []string
	exchanges []*exchange // one for each p
	awaited   eventloop.Exchange
}

func newScript(t *testing.T, outcomes string) *script {
	c := &script{t: t, outcomes: outcomes}
	for range strings.Count(outcomes, "p") {
		c.exchanges = append(c.exchanges, newExchange())
	}
	return c
}

func (c *script) run(_ *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
	where := "loop"
	if q.Loop() == nil {
		where = "worker"
	}
	if q.MayBlock() != (q.Loop() == nil) || q.Peer != peer || q.Awaited() != c.awaited {
		c.t.Errorf("run %d: may block: %t, peer %v, awaited %v", len(c.runs), q.MayBlock(), q.Peer, q.Awaited())
	}
	c.runs = append(c.runs, where)
	if len(c.runs) > len(c.outcomes) {
		c.t.Errorf("too many runs: %v", c.runs)
		return nil, wire.Done
	}
	switch c.outcomes[len(c.runs)-1] {
	case 'u':
		return nil, wire.Unpack
	case 'b':
		return nil, wire.Block
	case 'p':
		c.awaited = c.exchanges[strings.Count(c.outcomes[:len(c.runs)-1], "p")]
		q.Await(c.awaited)
		return nil, wire.Park
	case 's':
		return nil, wire.Park
	case 'n':
		return nil, wire.Done
	}
	return []byte(nameIn(q.Packet())), wire.Done
}

// firstRun is the first run of the chain for packet, as a transport has it.
func firstRun(s *service.Service, r *Run, packet []byte) wire.Outcome {
	loop := BorrowLoop()
	_, out := r.Serve(s, packet, peer, loop, nil)
	loop.Leave()
	return out
}

// A plugin that parks without a word of what for: a stream's query takes the message lane.
func TestLaterWithNothingBegun(t *testing.T) {
	becomes(t, newScript(t, "s"), Later, nil, "loop", "message www")
}

type laterFunc func(Source, *service.Service, []byte, *wire.Query, wire.Outcome)

// What becomes of a query, from its first run to its end.
func TestLater(t *testing.T) {
	for _, tc := range []struct{ name, outcomes, runs, want string }{
		{"unpacked", "u", "loop", "message www"},
		{"blocks", "bd", "loop worker", "reply www, may wait: true"},
		{"blocks, no reply", "bn", "loop worker", ""},
		{"blocks, unpacked", "bu", "loop worker", "message www"},
		{"blocks where it may wait", "bb", "loop worker", "message www"}, // the chain is wrong
		{"blocks, parked", "bpd", "loop worker loop", "reply www, may wait: false"},
		{"parked", "pd", "loop loop", "reply www, may wait: false"},
		{"parked, no reply", "pn", "loop loop", ""},
		{"parked, unpacked", "pu", "loop loop", "message www"},
		{"parked, blocks", "pbd", "loop loop worker", "reply www, may wait: true"},
		{"parked, blocks, unpacked", "pbu", "loop loop worker", "message www"},
		{"parked twice", "ppd", "loop loop loop", "reply www, may wait: false"},
		{"parked on the same again", "ps", "loop loop", "message www"}, // or it would never end
	} {
		for how, later := range map[string]laterFunc{"later": Later, "or drop": LaterOrDrop} {
			for memory, scratch := range map[string]*Waiting{"its memory": new(Waiting), "no memory": nil} {
				t.Run(tc.name+"/"+how+"/"+memory, func(t *testing.T) {
					becomes(t, newScript(t, tc.outcomes), later, scratch, tc.runs, tc.want)
				})
			}
		}
	}
}

func becomes(t *testing.T, c *script, later laterFunc, scratch *Waiting, runs, want string) {
	from := newSource()
	from.scratch = scratch
	s := serviceOf(t, &decider{wire: c.run})
	b := packet(t, "www.example.org.")
	r := NewRun()
	out := firstRun(s, r, b)
	later(from, s, b, &r.Query, out)
	r.Free()
	clear(b) // it is not kept
	for _, x := range c.exchanges {
		<-x.parked
		x.End()
	}
	<-from.over
	if got, want := from.told(), strings.Replace("begin; "+want+"; end", "; ;", ";", 1); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := strings.Join(c.runs, " "); got != runs {
		t.Errorf("runs: %s, want %s", got, runs)
	}
	nobodyWaits(t)
	if s.Inflight.Busy() {
		t.Error("it is in flight")
	}
}

// Who ends an exchange may be in one of the shared loops, and others in all the rest, who end exchanges, too.
func TestResumeWithoutAFreeLoop(t *testing.T) {
	c := newScript(t, "pd")
	s := serviceOf(t, &decider{wire: c.run})
	from, r, b := newSource(), NewRun(), packet(t, "www.example.org.")
	Later(from, s, b, &r.Query, firstRun(s, r, b))
	r.Free()
	lent := make([]*eventloop.Loop, len(sharedLoops()))
	for i := range lent {
		lent[i] = BorrowLoop()
	}
	(<-c.exchanges[0].parked).Resume()
	<-from.over
	for _, l := range lent {
		l.Leave()
	}
	if got, want := from.told(), "begin; reply www, may wait: true; end"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	nobodyWaits(t)
}

// batchSource sends replies when a batch is over.
type batchSource struct{ *source }

func (s batchSource) ReplyIn(_ *eventloop.Loop, b []byte) { s.note("reply %s in the batch", b) }

// Who ends an exchange in a loop of his own has the reply in his batch, where the source can send it so.
func TestResumeInABatch(t *testing.T) {
	for _, tc := range []struct {
		name, outcomes, runs, want string
		batch, done                bool
	}{
		{"in the batch", "pd", "loop loop", "reply www in the batch", true, true},
		{"no reply", "pn", "loop loop", "", true, true},
		{"by itself", "pd", "loop loop", "reply www, may wait: false", false, false},
		{"blocks", "pbd", "loop loop worker", "reply www, may wait: true", true, false},
		{"unpacked", "pu", "loop loop", "message www", true, false},
		{"parked again", "ppd", "loop loop loop", "reply www, may wait: false", true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newScript(t, tc.outcomes)
			s := serviceOf(t, &decider{wire: c.run})
			from := newSource()
			var as Source = from
			if tc.batch {
				as = batchSource{from}
			}
			r := NewRun()
			b := packet(t, "www.example.org.")
			firstRun(s, r, b)
			Later(as, s, b, &r.Query, wire.Park)
			r.Free()
			loop := eventloop.New()
			defer loop.Close()
			loop.Enter()
			if done := (<-c.exchanges[0].parked).(eventloop.LoopResumer).ResumeIn(loop); done != tc.done {
				t.Errorf("done: %t", done)
			}
			loop.Leave()
			for _, x := range c.exchanges[1:] {
				<-x.parked
				x.End()
			}
			<-from.over
			if got, want := from.told(), strings.Replace("begin; "+tc.want+"; end", "; ;", ";", 1); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if got := strings.Join(c.runs, " "); got != tc.runs {
				t.Errorf("runs: %s, want %s", got, tc.runs)
			}
			nobodyWaits(t)
		})
	}
}

// Beyond what may wait, LaterOrDrop drops and counts.
func TestDropped(t *testing.T) {
	mayWait(t, 1)
	x, refused := newExchange(), newExchange()
	on := x
	s := serviceOf(t, &decider{wire: func(_ *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
		if q.Awaited() != nil {
			return []byte("late"), wire.Done
		}
		if on != nil {
			q.Await(on)
		}
		return nil, wire.Park
	}})
	dropped := func() float64 { return testutil.ToFloat64(vars.QueriesDropped.WithLabelValues(s.Label, "waiting")) }
	before := dropped()
	held, release := newSource(), make(chan struct{})
	held.serve = func() { <-release }
	b := packet(t, "www.example.org.")
	LaterOrDrop(held, s, b, nil, wire.Unpack)
	for i, out := range []wire.Outcome{wire.Unpack, wire.Block} {
		from := newSource()
		LaterOrDrop(from, s, b, nil, out)
		if got := from.told(); got != "begin; end" || dropped() != before+float64(i+1) {
			t.Errorf("%v: %s, %v dropped", out, got, dropped()-before)
		}
	}
	close(release)
	<-held.over

	park := func() *source {
		r, from := NewRun(), newSource()
		defer r.Free()
		LaterOrDrop(from, s, b, &r.Query, firstRun(s, r, b))
		return from
	}
	parked := park()
	on = refused
	if got := park().told(); got != "begin; end" || dropped() != before+3 {
		t.Errorf("parked: %s, %v dropped", got, dropped()-before)
	}
	if len(refused.parked) > 0 {
		t.Error("it was parked")
	}
	if on = nil; !crowded() {
		t.Error("not crowded")
	}
	x.End()
	<-parked.over
	if got := parked.told(); got != "begin; reply late, may wait: false; end" {
		t.Errorf("the first one: %s", got)
	}
	if got := park().told(); crowded() || got != "begin; end" || dropped() != before+4 { // what began nothing, though there is room now
		t.Errorf("nothing begun: %s, %v dropped", got, dropped()-before)
	}
	nobodyWaits(t)
}

// A query that was parked gives way: it is dropped if its transport drops, and takes the message lane if not.
func TestGaveWay(t *testing.T) {
	for name, tc := range map[string]struct {
		later   func(Source, *service.Service, []byte, *wire.Query, wire.Outcome)
		told    string
		dropped float64
	}{
		"drops": {LaterOrDrop, "begin; end", 1},
		"waits": {Later, "begin; message www; end", 0},
	} {
		x := newExchange()
		s := serviceOf(t, &decider{wire: func(_ *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
			if q.Awaited() == nil {
				q.Await(x)
			} else {
				if got := q.GivesWay(); got != eventloop.Parked {
					t.Errorf("%s: waiting for something else, it gives way %v", name, got)
				}
				q.Await(nil)
			}
			return nil, wire.Park
		}})
		dropped := func() float64 { return testutil.ToFloat64(vars.QueriesDropped.WithLabelValues(s.Label, "waiting")) }
		before := dropped()
		from, r, b := newSource(), NewRun(), packet(t, "www.example.org.")
		tc.later(from, s, b, &r.Query, firstRun(s, r, b))
		r.Free()
		<-x.parked
		x.End()
		<-from.over
		if got := from.told(); got != tc.told || dropped()-before != tc.dropped {
			t.Errorf("%s: %s, %v dropped", name, got, dropped()-before)
		}
		nobodyWaits(t)
	}
}

// Beyond what may wait, Later waits: none is lost, and there are never more.
func TestLaterWaits(t *testing.T) {
	mayWait(t, 2)
	s := serviceOf(t, &decider{})
	b := packet(t, "www.example.org.")
	var atWork atomic.Int32
	var sources []*source
	for range 50 {
		from := newSource()
		from.serve = func() {
			if n := atWork.Add(1); n > 2 {
				t.Errorf("%d at work", n)
			}
			runtime.Gosched()
			atWork.Add(-1)
		}
		Later(from, s, b, nil, wire.Unpack)
		sources = append(sources, from)
	}
	for _, from := range sources {
		<-from.over
		if got := from.told(); got != "begin; message www; end" {
			t.Error(got)
		}
	}
	nobodyWaits(t)
}

// Who parks one query too many is held up until another one is resumed.
func TestLaterWaitsForParked(t *testing.T) {
	mayWait(t, 1)
	x := [2]*exchange{newExchange(), newExchange()}
	begun := 0
	s := serviceOf(t, &decider{wire: func(_ *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
		if q.Awaited() != nil {
			return nil, wire.Done
		}
		q.Await(x[begun])
		begun++
		return nil, wire.Park
	}})
	b := packet(t, "www.example.org.")
	park := func() *source {
		r, from := NewRun(), newSource()
		defer r.Free()
		Later(from, s, b, &r.Query, firstRun(s, r, b))
		return from
	}
	first := park()
	second := make(chan *source, 1)
	go func() { second <- park() }()
	<-x[1].parked
	for range 20 {
		runtime.Gosched()
	}
	if len(second) > 0 {
		t.Error("it was not held up")
	}
	x[0].End()
	<-first.over
	from := <-second
	x[1].End()
	<-from.over
	nobodyWaits(t)
}

// A handler that ends its goroutine costs no worker, and the query is over.
func TestHandlerEndsTheWorker(t *testing.T) {
	mayWait(t, 1)
	s := serviceOf(t, &decider{})
	for range 3 {
		from := newSource()
		from.serve = runtime.Goexit
		Later(from, s, packet(t, "www.example.org."), nil, wire.Unpack)
		<-from.over
	}
	nobodyWaits(t)
	if s.Inflight.Busy() {
		t.Error("they are in flight")
	}
}

// A panic that the server does not recover from is seen, also if it is a worker's.
func TestPanicOfWorkerIsSeen(t *testing.T) {
	if os.Getenv(ownProcess) == "" {
		dies(t, "yes", "as asked")
		return
	}
	from := newSource()
	from.serve = func() { panic("as asked") }
	Later(from, serviceOf(t, &decider{}), packet(t, "www.example.org."), nil, wire.Unpack)
	<-from.over
	select {} // the process ends
}
