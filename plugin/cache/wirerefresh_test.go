package cache

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// oddSource parks the first run of a query, and panics, waits, cuts the reply or answers in the next one.
type oddSource struct {
	source
	then string
	done chan struct{} // closed after a query in the message lane
	over string        // what that came over, and from whom
	kept int           // for how many seconds the answer is kept, as was told last
}

func (s *oddSource) WireSelf() plugin.Handler { return s }
func (s *oddSource) Name() string             { return "odd" }

func (s *oddSource) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	s.kept, _ = advice.Refreshes(ctx)
	if q.Awaited() != nil {
		switch s.then {
		case "panics":
			panic("as it should")
		case "unpacks", "unpacks and panics":
			return wire.Unpack
		case "fails":
			w.Fail(wire.ServFail, nil)
			return wire.Done
		}
	}
	out := s.source.ServeWire(ctx, w, q)
	if out == wire.Done && s.then == "cuts" {
		w.SetFlag(wire.FlagTC, true)
	}
	return out
}

func (s *oddSource) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	defer close(s.done)
	s.kept, _ = advice.Refreshes(ctx)
	s.over = w.RemoteAddr().Network() + " " + w.RemoteAddr().String()
	if s.then == "unpacks and panics" {
		panic("as it should")
	}
	m := new(dns.Msg).SetReply(r)
	m.Answer = []dns.RR{test.A("www.example.org. 60 IN A 192.0.2.2")}
	return 0, w.WriteMsg(m)
}

// A refresh that a query of the lane makes due goes through the lane, too, and leaves it where that does not go on.
func TestRefreshInTheLane(t *testing.T) {
	for then, tc := range map[string]struct {
		message  string // what the message lane is asked over, and for whom, "" if it is not
		replaced bool
	}{
		"answers":            {"", true},
		"cuts":               {"tcp 192.0.2.7:4711", true},
		"unpacks":            {"udp 192.0.2.7:4711", true},
		"unpacks and panics": {"udp 192.0.2.7:4711", false},
		"fails":              {"", false},
		"panics":             {"", false},
	} {
		t.Run(then, func(t *testing.T) {
			s := &oddSource{then: "answers", done: make(chan struct{})}
			c := New()
			clock := time.Now()
			c.now = func() time.Time { return clock }
			c.prefetch, c.percentage, c.duration = 1, 50, time.Minute
			c.Next = s
			c.prepare()
			n := c.countsOf(context.Background())
			prefetched := testutil.ToFloat64(n.prefetch.counter())
			serve := func(awaited eventloop.Exchange) wire.Outcome {
				q := query(t, "www.example.org.", awaited)
				q.Client = netip.MustParseAddrPort("192.0.2.7:4711")
				var w wire.Reply
				w.Reset(nil)
				return c.ServeWire(context.Background(), &w, q)
			}
			if serve(nil) != wire.Park {
				t.Fatal("not parked")
			}
			s.last.End()
			if serve(s.last) != wire.Done || s.kept != 0 {
				t.Fatalf("not answered, or kept for %d seconds", s.kept)
			}
			old := c.positive.get(&c.questionOfName(t).key)
			clock = clock.Add(40 * time.Second)
			s.then = then
			loop := eventloop.New()
			defer loop.Close()
			for range 2 {
				if out := serve(nil); out != wire.Done {
					t.Fatal(out)
				}
			}
			if s.begun != 2 || !old.fetch.running.Load() {
				t.Fatalf("asked %d times, a refresh runs: %t", s.begun, old.fetch.running.Load())
			}
			loop.Enter()
			s.last.EndIn(loop)
			loop.Done(0)
			loop.Leave()
			if tc.message != "" {
				if <-s.done; s.over != tc.message {
					t.Errorf("asked over %q, want %q", s.over, tc.message)
				}
			}
			for i := 0; old.fetch.running.Load(); i++ {
				if i == 1000 {
					t.Fatal("the refresh does not end")
				}
				time.Sleep(time.Millisecond)
			}
			if s.kept != 20 {
				t.Errorf("the source was told that the answer is kept for %d seconds, want 20", s.kept)
			}
			now := c.positive.get(&c.questionOfName(t).key)
			if (now != old) != tc.replaced || tc.replaced && now.remaining(clock) != 60 {
				t.Errorf("replaced: %t, %d seconds left", now != old, now.remaining(clock))
			}
			if got := testutil.ToFloat64(n.prefetch.counter()) - prefetched; got != 1 || len(c.refreshes) != 0 {
				t.Errorf("%v refreshes counted, %d run", got, len(c.refreshes))
			}
		})
	}
}

// questionOfName is the question of the tests.
func (c *Cache) questionOfName(t *testing.T) *question {
	k := c.questionOf(query(t, "www.example.org.", nil))
	return &k
}
