package header

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/cache"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// A cache above keeps to a rule for AA with what it answers itself, in both lanes.
func TestHitsKeepToRules(t *testing.T) {
	for _, tc := range []struct {
		rules       string
		resolver    bool // the reply says that it is a resolver's
		first, hits string
	}{
		{"response set ra", false, "rard", "aarard"},
		{"response set ra", true, "rard", "rard"},
		{"response clear aa", false, "rd", "rd"},
		{"response set aa", true, "aard", "aard"},
	} {
		for _, lane := range []string{"wire", "message"} {
			c := cache.New()
			c.Next = serving(t, tc.rules, &resolved{on: tc.resolver})
			for i, want := range []string{tc.first, tc.hits, tc.hits} {
				query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
				reply := new(dns.Msg)
				if lane == "wire" {
					packet, _ := query.Pack()
					var q wire.Query
					var w wire.Reply
					w.Reset(make([]byte, 512))
					if !q.Parse(packet) || c.ServeWire(t.Context(), &w, &q) != wire.Done {
						t.Fatal("no answer")
					}
					if err := reply.Unpack(w.Finish(&q, 1232)); err != nil {
						t.Fatal(err)
					}
				} else {
					rec := dnstest.NewRecorder(&test.ResponseWriter{})
					if _, err := c.ServeDNS(t.Context(), rec, query); err != nil {
						t.Fatal(err)
					}
					reply = rec.Msg
				}
				if got := bits(&reply.MsgHdr); got != want || len(reply.Answer) != 1 {
					t.Errorf("%q over a resolver %v, %s lane, query %d: got %q, want %q", tc.rules, tc.resolver, lane, i, got, want)
				}
			}
		}
	}
}

// resolved answers with one address and no AA; on says that a resolver has found it.
type resolved struct{ on bool }

func (*resolved) Name() string               { return "resolved" }
func (r *resolved) WireSelf() plugin.Handler { return r }

func (r *resolved) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	w.Begin(q)
	w.Record(wire.Answer, q.Name(), wire.TypeA, wire.ClassIN, 300, []byte{192, 0, 2, 1})
	w.SetNonAuthoritative(r.on)
	return wire.Done
}

func (r *resolved) ServeDNS(ctx context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
	a, err := plugin.NewWireAdapter(w, m)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	defer a.Free()
	r.ServeWire(ctx, &a.Reply, &a.Query)
	return a.Write()
}
