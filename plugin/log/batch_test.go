package log

import (
	"context"
	"errors"
	"fmt"
	golog "log"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// inLoop serves a query for a name on a loop, or on none.
func inLoop(t testing.TB, l Logger, loop *eventloop.Loop, name string) {
	b, err := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	var q wire.Query
	var w wire.Reply
	q.Parse(b)
	q.Arrival = time.Now()
	q.SetLoop(loop)
	w.Reset(make([]byte, 512))
	l.ServeWire(t.Context(), &w, &q)
}

// named logs the names of all queries.
func named() Logger {
	rules := []Rule{{NameScope: ".", Class: classes(response.All), Format: "{name}"}}
	return Logger{Next: same{}, Rules: rules, ready: ready(rules, make([]part, 1))}
}

// Lines of a loop come when its batch is over, each once and in order; a batch without an end holds little back.
func TestBatches(t *testing.T) {
	out := capture(t)
	l, loop := named(), eventloop.New()
	defer loop.Close()
	want := ""
	for batch := range 3 {
		loop.Enter()
		for i := range 5 {
			name := fmt.Sprintf("%d.%d.example.", batch, i)
			inLoop(t, l, loop, name)
			want += "[INFO] " + name + "\n"
		}
		loop.Done(0)
		loop.Leave()
	}
	clog.Sync()
	if out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
	out.Reset()
	loop.Enter()
	long := strings.Repeat("a.", 100)
	for range 1000 {
		inLoop(t, l, loop, long)
	}
	clog.Sync()
	if n := strings.Count(out.String(), long); n < 800 || n > 1000 {
		t.Errorf("%d of 1000 lines before the batch is over", n)
	}
	loop.Done(0)
	loop.Leave()
	clog.Sync()
	if n := strings.Count(out.String(), "[INFO] "+long+"\n"); n != 1000 {
		t.Errorf("%d lines, want 1000", n)
	}
}

// Each line has a time of its own where the logger gives it one.
func TestBatchWithTimes(t *testing.T) {
	out := capture(t)
	golog.SetFlags(golog.LUTC | golog.Lmsgprefix)
	golog.SetPrefix("p ")
	t.Cleanup(func() { golog.SetPrefix("") })
	loop := eventloop.New()
	defer loop.Close()
	for range 3 {
		inLoop(t, named(), loop, "example.")
	}
	loop.Done(0)
	clog.Sync()
	if got, want := out.String(), strings.Repeat("p [INFO] example.\n", 3); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The lines of each of several loops, and of queries outside of them, are whole and in order.
func TestBatchesOfSeveralLoops(t *testing.T) {
	out := capture(t)
	l := named()
	const loops, batches, queries = 4, 50, 8
	var wg sync.WaitGroup
	for n := range loops {
		wg.Go(func() {
			var loop *eventloop.Loop
			if n > 0 { // the first has none
				loop = eventloop.New()
				defer loop.Close()
			}
			for i := range batches * queries {
				inLoop(t, l, loop, fmt.Sprintf("%d.%d.example.", n, i))
				if loop != nil && i%queries == queries-1 {
					loop.Done(0)
				}
			}
		})
	}
	wg.Wait()
	clog.Sync()
	var next [loops]int
	for line := range strings.Lines(out.String()) {
		var n, i int
		if _, err := fmt.Sscanf(line, "[INFO] %d.%d.example.\n", &n, &i); err != nil || next[n] != i {
			t.Fatalf("%q: want %d, %v", line, next[n], err)
		}
		next[n]++
	}
	for n := range next {
		if next[n] != batches*queries {
			t.Errorf("%d lines of loop %d", next[n], n)
		}
	}
}

// A line in a batch takes no memory.
func TestBatchDoesNotAllocate(t *testing.T) {
	capture(t)
	golog.SetOutput(nothing{})
	loop := eventloop.New()
	defer loop.Close()
	l := named()
	b, err := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	q, w, space := new(wire.Query), new(wire.Reply), make([]byte, 512)
	serve := func() {
		for range 16 {
			q.Parse(b)
			q.SetLoop(loop)
			w.Reset(space)
			l.ServeWire(t.Context(), w, q)
		}
		loop.Done(0)
	}
	for range 5000 { // until the log has its room
		serve()
	}
	if n := testing.AllocsPerRun(1000, serve); n > 0 {
		t.Errorf("%v allocations in a batch", n)
	}
}

// nothing takes all.
type nothing struct{}

func (nothing) Write(b []byte) (int, error) { return len(b), nil }

// failing fails all queries.
type failing struct{ same }

func (failing) ServeWire(_ context.Context, w *wire.Reply, _ *wire.Query) wire.Outcome {
	w.Fail(wire.ServFail, errors.New("as asked"))
	return wire.Done
}

// The line about a query that fails does not wait for the end of the batch: the line of *errors* comes behind it.
func TestBatchWithFailure(t *testing.T) {
	out := capture(t)
	l, loop := named(), eventloop.New()
	defer loop.Close()
	loop.Enter()
	inLoop(t, l, loop, "well.")
	l.Next = failing{}
	inLoop(t, l, loop, "fails.")
	clog.Sync()
	// Another test may have left lines to a loop of the same number.
	if want := "[INFO] well.\n[INFO] fails.\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %q, want %q", out, want)
	}
	loop.Done(0)
	loop.Leave()
}
