package exec

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// queryWriter keeps what is written, and in which order what happens.
type queryWriter struct {
	dns.ResponseWriter
	events []string
}

func (w *queryWriter) Peer() wire.Peer { return peer }
func (w *queryWriter) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}
}
func (w *queryWriter) Send(b []byte) error {
	w.events = append(w.events, "send "+string(b))
	if atWork, _ := Waits(); atWork != 0 { // the client may take its time
		w.events = append(w.events, "in a place that others may need")
	}
	return nil
}
func (w *queryWriter) Verify(packet []byte, r *dns.Msg) {
	w.events = append(w.events, "verify "+nameIn(packet)+" "+r.Question[0].Name)
}

// served is what a packet leads to, and how the chain was run for it. Each p parks on what ends soon after.
func served(t *testing.T, ctx context.Context, outcomes string, packet []byte, change func(*service.Service)) (told, runs string, err error) {
	t.Helper()
	c := newScript(t, outcomes)
	for _, x := range c.exchanges {
		go func() {
			<-x.parked
			x.End()
		}()
	}
	w := new(queryWriter)
	s := serviceOf(t, &decider{
		wire: func(r *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
			if deadline, _ := ctx.Deadline(); q.Deadline() != deadline || q.Peer.Arrival.IsZero() {
				t.Errorf("deadline %v, arrival %v", q.Deadline(), q.Peer.Arrival)
			}
			q.Peer.Arrival = time.Time{}
			return c.run(r, q)
		},
		message: func(in context.Context, to dns.ResponseWriter, r *dns.Msg) {
			if in.Done() != ctx.Done() || eventloop.PlaceOf(in) != eventloop.AtWork || to != dns.ResponseWriter(w) {
				t.Error("another context or writer")
			}
			if atWork, _ := Waits(); atWork != 1 {
				t.Errorf("%d count as at work", atWork)
			}
			w.events = append(w.events, "message "+r.Question[0].Name)
		},
	})
	if change != nil {
		change(s)
	}
	err = Serve(ctx, s, w, packet)
	nobodyWaits(t)
	return strings.Join(w.events, ", "), strings.Join(c.runs, " "), err
}

// What becomes of a query for which the transport has a goroutine: that goroutine waits.
func TestServe(t *testing.T) {
	const message = "verify www www.example.org., message www.example.org."
	b := packet(t, "www.example.org.")
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for _, tc := range []struct{ outcomes, runs, want string }{
		{"d", "loop", "send www"},
		{"n", "loop", ""},
		{"u", "loop", message},
		{"bd", "loop worker", "send www"},
		{"bu", "loop worker", message},
		{"bb", "loop worker", message},
		{"pd", "loop worker", "send www"},
		{"pn", "loop worker", ""},
		{"pu", "loop worker", message},
		{"pbd", "loop worker", message}, // it might have blocked
		{"ppd", "loop worker worker", "send www"},
		{"bpd", "loop worker worker", "send www"},
		{"ps", "loop worker", message},
	} {
		for _, ctx := range []context.Context{t.Context(), ctx} {
			if told, runs, err := served(t, ctx, tc.outcomes, slices.Clone(b), nil); told != tc.want || runs != tc.runs || err != nil {
				t.Errorf("%s: %s; runs %s, error %v; want %s; runs %s", tc.outcomes, told, runs, err, tc.want, tc.runs)
			}
		}
	}
	off := func(s *service.Service) { s.Wire = false }
	if told, runs, err := served(t, ctx, "", b, off); told != message || runs != "" || err != nil {
		t.Errorf("without the wire lane: %s; runs %s, error %v", told, runs, err)
	}
}

// What is no query is the transport's to tell.
func TestServeNoQuery(t *testing.T) {
	b := packet(t, "www.example.org.")
	for name, b := range map[string][]byte{"nothing": nil, "cut": b[:len(b)-1], "an answer": append([]byte{0, 0, 0x80, 0}, b[4:]...)} {
		if told, runs, err := served(t, t.Context(), "", b, nil); told != "" || runs != "" || err == nil || errors.Is(err, ErrCrowded) {
			t.Errorf("%s: %s; runs %s, error %v", name, told, runs, err)
		}
	}
}

// It is counted by the rcode that it would have had over UDP, as nothing else tells of it; what is ignored there is not.
func TestServeCountsNoQuery(t *testing.T) {
	b := packet(t, "www.example.org.")
	patched := func(at int, octet byte) []byte {
		b := slices.Clone(b)
		b[at] = octet
		return b
	}
	for _, tc := range []struct {
		name, rcode string
		packet      []byte
	}{
		{"STATUS", "NOTIMP", patched(2, 2<<3)},
		{"two questions", "FORMERR", patched(5, 2)},
		{"cut", "FORMERR", b[:len(b)-1]},
		{"a header alone", "FORMERR", b[:12]},
		{"an answer", "", patched(2, 0x80)},
		{"less than a header", "", b[:11]},
		{"a query", "", b},
	} {
		s := serviceOf(t, &decider{message: func(context.Context, dns.ResponseWriter, *dns.Msg) {}})
		s.Wire, s.Label = false, "dns://"+tc.name
		counted := func(rcode string) float64 {
			return testutil.ToFloat64(vars.ResponseRcode.WithLabelValues(s.Label, vars.Dropped, "", rcode, ""))
		}
		rcodes := []string{"NOTIMP", "FORMERR", "NOERROR"}
		before := map[string]float64{}
		for _, rcode := range rcodes {
			before[rcode] = counted(rcode)
		}
		Serve(t.Context(), s, new(queryWriter), tc.packet)
		for _, rcode := range rcodes {
			want := 0.0
			if rcode == tc.rcode {
				want = 1
			}
			if n := counted(rcode) - before[rcode]; n != want {
				t.Errorf("%s: %s counted %v times", tc.name, rcode, n)
			}
		}
	}
}

// Where too many wait, a query waits for one of them to end, as long as its client does. What need not wait is
// answered.
func TestServeInACrowd(t *testing.T) {
	mayWait(t, 1)
	b := packet(t, "www.example.org.")
	if !Enter(t.Context()) {
		t.Fatal("refused")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		outcomes string
		want     error
	}{{"u", ErrCrowded}, {"b", ErrCrowded}, {"pb", ErrCrowded}, {"pd", ErrCrowded}, {"d", nil}} {
		c, w := newScript(t, tc.outcomes), new(queryWriter)
		for _, x := range c.exchanges {
			x.End()
		}
		s := serviceOf(t, &decider{wire: func(r *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
			q.Peer.Arrival = time.Time{}
			return c.run(r, q)
		}})
		counted := func() float64 { return testutil.ToFloat64(service.Limited(s.Label, "waiting")) }
		before := counted()
		err := Serve(over, s, w, b)
		if err != tc.want || (counted() == before+1) != (tc.want != nil) {
			t.Errorf("%s: %v, counted %v", tc.outcomes, err, counted()-before)
		}
		if sent := slices.Contains(w.events, "send www"); sent != (tc.want == nil) {
			t.Errorf("%s: %v", tc.outcomes, w.events)
		}
	}
	told := make(chan string)
	go func() {
		s := serviceOf(t, &decider{message: func(context.Context, dns.ResponseWriter, *dns.Msg) {}})
		s.Wire = false
		w := new(queryWriter)
		if err := Serve(context.Background(), s, w, b); err != nil {
			t.Error(err)
		}
		told <- strings.Join(w.events, ", ")
	}()
	Leave()
	if got := <-told; got != "verify www www.example.org." {
		t.Error(got)
	}
	nobodyWaits(t)
}

// What would wait is not begun where too many do, but served when there is room.
func TestServeBeginsNothingInACrowd(t *testing.T) {
	mayWait(t, 1)
	var told []string
	began := make(chan struct{}, 1)
	s := serviceOf(t, &decider{wire: func(_ *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
		told = append(told, fmt.Sprintf("crowded: %t, may block: %t", q.Crowded(), q.MayBlock()))
		if q.Crowded() {
			began <- struct{}{}
			return nil, wire.Park
		}
		return nil, wire.Done
	}})
	serve := func() {
		if err := Serve(t.Context(), s, new(queryWriter), packet(t, "www.example.org.")); err != nil {
			t.Error(err)
		}
	}
	serve()
	if !Enter(t.Context()) {
		t.Fatal("refused")
	}
	var all sync.WaitGroup
	all.Go(serve)
	<-began
	Leave()
	all.Wait()
	if want := []string{"crowded: false, may block: false", "crowded: true, may block: false", "crowded: false, may block: true"}; !slices.Equal(told, want) {
		t.Errorf("the chain was told %q, want %q", told, want)
	}
	nobodyWaits(t)
}

// A panic in a handler that waits costs no place.
func TestServePanics(t *testing.T) {
	mayWait(t, 1)
	s := serviceOf(t, &decider{
		wire: func(_ *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) {
			if q.MayBlock() {
				panic("as asked")
			}
			return nil, wire.Block
		},
		message: func(context.Context, dns.ResponseWriter, *dns.Msg) { panic("as asked") },
	})
	for _, s.Wire = range []bool{true, false} {
		func() {
			defer func() {
				if v := recover(); v != "as asked" {
					t.Errorf("recovered from %v", v)
				}
			}()
			Serve(t.Context(), s, new(queryWriter), packet(t, "www.example.org."))
		}()
		nobodyWaits(t)
	}
}

// patient tells when its query is about to be served.
type patient struct {
	queryWriter
	arrived *sync.WaitGroup
}

func (p *patient) Peer() wire.Peer { p.arrived.Done(); return peer }

// Who waits for a loop holds no Run, which has the memory of a reply, perhaps of a long one: there are many who wait
// where replies are long.
func TestNoRunWithoutLoop(t *testing.T) {
	for _, l := range sharedLoops() {
		l.Enter()
	}
	var made atomic.Int32
	runs = sync.Pool{New: func() any {
		made.Add(1)
		return new(Run)
	}}
	defer func() { runs = sync.Pool{New: func() any { return new(Run) }} }()

	const waiting = 50
	s := serviceOf(t, &decider{wire: func(*wire.Reply, *wire.Query) ([]byte, wire.Outcome) { return nil, wire.Done }})
	var arrived, served sync.WaitGroup
	arrived.Add(waiting)
	for range waiting {
		served.Go(func() { Serve(t.Context(), s, &patient{arrived: &arrived}, packet(t, "www.")) })
	}
	arrived.Wait()
	if n := made.Load(); n != 0 {
		t.Errorf("%d who wait have %d Runs", waiting, n)
	}
	for _, l := range sharedLoops() {
		l.Leave()
	}
	served.Wait()
	if made.Load() == 0 {
		t.Error("nobody was served with a Run")
	}
}
