package log

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// both answers in either lane.
type both struct{ test.Handler }

func (b both) Name() string             { return "both" }
func (b both) WireSelf() plugin.Handler { return b }
func (b both) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	w.Begin(q)
	return wire.Done
}

// Whether a query is chosen is a matter of chance alone, on a loop as elsewhere: so many are, and so many behind one that
// is; and loops do not wait for each other.
func TestSampler(t *testing.T) {
	one, other := eventloop.New(), eventloop.New()
	defer one.Close()
	defer other.Close()
	for _, loops := range [][]*eventloop.Loop{{one}, {nil}, {one, other}} {
		const n, queries = 10, 200_000
		s := sampler{one: n}
		for _, l := range loops {
			chosen, pairs, last := 0, 0, false
			for range queries {
				now := s.chosen(l)
				if now {
					chosen++
				}
				if now && last {
					pairs++
				}
				last = now
			}
			// Six standard deviations, of 134 and 45: one run of 10^8 fails by chance.
			if chosen < queries/n-800 || chosen > queries/n+800 {
				t.Errorf("%v: %d of %d are chosen", loops, chosen, queries)
			}
			if pairs < queries/n/n-270 || pairs > queries/n/n+270 {
				t.Errorf("%v: %d of %d behind another", loops, pairs, chosen)
			}
		}
	}
}

// A part of the queries is logged, and those that are slow, in both lanes.
func TestSample(t *testing.T) {
	const queries = 4000
	for _, tc := range []struct {
		name        string
		part        part
		took        time.Duration
		least, most int
	}{
		{"all", part{}, 0, queries, queries},
		{"one of one", part{sample: 1}, 0, queries, queries},
		{"one of ten", part{sample: 10}, 0, queries / 15, queries / 7},
		{"quick", part{slower: time.Hour}, 0, 0, 0},
		{"slow", part{slower: time.Minute}, 2 * time.Minute, queries, queries},
	} {
		rules := []Rule{{NameScope: ".", Class: classes(response.All), Format: "{name}"}}
		l := Logger{Next: both{success}, Rules: rules, ready: ready(rules, []part{tc.part})}
		b, err := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
		if err != nil {
			t.Fatal(err)
		}
		out := capture(t)
		for range queries {
			var q wire.Query
			var w wire.Reply
			q.Parse(b)
			q.Arrival = time.Now().Add(-tc.took)
			w.Reset(make([]byte, 512))
			l.ServeWire(context.Background(), &w, &q)
		}
		clog.Sync()
		if n := strings.Count(out.String(), "www.example.org."); n < tc.least || n > tc.most {
			t.Errorf("%s, bytes: %d of %d lines", tc.name, n, queries)
		}
		if tc.took > 0 {
			continue // what is written at once took no time
		}
		out.Reset()
		for range queries {
			l.ServeDNS(context.Background(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		}
		clog.Sync()
		if n := strings.Count(out.String(), "www.example.org."); n < tc.least || n > tc.most {
			t.Errorf("%s, messages: %d of %d lines", tc.name, n, queries)
		}
	}
}
