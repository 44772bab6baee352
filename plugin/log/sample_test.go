package log

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
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
