package log

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// other is a plugin that looks up another name, in both lanes.
type other struct{}

func (other) Name() string             { return "other" }
func (other) WireSelf() plugin.Handler { return other{} }

func (other) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	plugin.NoteLookedUp(ctx, "Other.example.net.")
	return dns.RcodeSuccess, w.WriteMsg(new(dns.Msg).SetReply(r))
}

func (other) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	m := q.Mark()
	defer q.Restore(m)
	name, _ := wire.LowerName("other.example.net.")
	q.SetName(name)
	w.Begin(q)
	return wire.Done
}

// same is one that does not.
type same struct{ other }

func (same) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	w.Begin(q)
	return wire.Done
}

// A format may tell the name that plugins looked up last; without such a plugin it is the one asked for.
func TestLookedUp(t *testing.T) {
	m := new(dns.Msg).SetQuestion("WWW.example.org.", dns.TypeA)
	for _, tc := range []struct {
		next plugin.Handler
		want string
	}{{success, "[INFO] www.example.org. www.example.org.\n"}, {other{}, "[INFO] www.example.org. other.example.net.\n"}} {
		rules := []Rule{{NameScope: ".", Format: "{name} {looked_up}", Class: classes(response.All)}}
		l := Logger{Next: tc.next, Rules: rules, ready: ready(rules, make([]part, 1))}
		out := capture(t)
		if _, err := l.ServeDNS(t.Context(), &test.ResponseWriter{}, m.Copy()); err != nil {
			t.Fatal(err)
		}
		if out.String() != tc.want {
			t.Errorf("in the message lane %q, want %q", out, tc.want)
		}
	}
	var q wire.Query
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		next plugin.Handler
		want string
	}{ // one after the other, with the same Query
		{other{}, "[INFO] www.example.org. other.example.net.\n"}, {same{}, "[INFO] www.example.org. www.example.org.\n"},
	} {
		if !q.Parse(b) {
			t.Fatal("the query is none")
		}
		rules := []Rule{{NameScope: ".", Format: "{name} {looked_up}", Class: classes(response.All)}}
		l := Logger{Next: tc.next, Rules: rules, ready: ready(rules, make([]part, 1))}
		out := capture(t)
		w := new(wire.Reply)
		w.Reset(make([]byte, 512))
		l.ServeWire(t.Context(), w, &q)
		clog.Sync()
		if out.String() != tc.want {
			t.Errorf("in the wire lane %q, want %q", out, tc.want)
		}
	}
}
