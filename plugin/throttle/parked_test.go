package throttle

import (
	"context"
	"net/netip"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Queries that wait for others count from then on, so that a burst of them does not go through, and are answered when
// what they wait for has ended, however many have come meanwhile.
func TestParked(t *testing.T) {
	for options, want := range map[string]int{"queries 10\nslip 0": 10, "queries 10\nobserve": 30} {
		s := serving(t, options, true)
		c := exceeded.WithLabelValues("", "queries", "observe")
		before, parked := testutil.ToFloat64(c), 0
		run := func(awaited eventloop.Exchange, next plugin.Handler) wire.Outcome {
			packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
			var q wire.Query
			q.Parse(packet)
			q.Client, q.Arrival = netip.MustParseAddrPort("192.0.2.1:53"), s.time
			q.Await(awaited)
			var w wire.Reply
			w.Reset(nil)
			s.Next = next
			return s.ServeWire(t.Context(), &w, &q)
		}
		for range 30 {
			if run(nil, outcome(wire.Park)) == wire.Park {
				parked++
			}
		}
		if counted := testutil.ToFloat64(c) - before; parked != want || counted != float64(want-10) {
			t.Errorf("%q: %d of 30 wait for others, want %d; %v are counted", options, parked, want, counted)
		}
		had := s.served
		for range parked {
			run(new(ended), source{&s.served})
		}
		if got := s.served - had; got != parked {
			t.Errorf("%q: %d of %d are answered", options, got, parked)
		}
	}
}

// ended is an exchange that has ended.
type ended struct{ eventloop.Exchange }

type outcome wire.Outcome

func (o outcome) Name() string             { return "outcome" }
func (o outcome) WireSelf() plugin.Handler { return o }

func (o outcome) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return 0, nil
}

func (o outcome) ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome {
	return wire.Outcome(o)
}

// Errors go up to be logged, also if nothing is sent.
func TestErrorsGoUp(t *testing.T) {
	s := serving(t, "errors 1\nslip 0", false)
	for range 3 {
		if _, err := s.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("fail.example.org.", dns.TypeA)); err != errFailed {
			t.Errorf("message lane: got %v", err)
		}
		packet, _ := new(dns.Msg).SetQuestion("fail.example.org.", dns.TypeA).Pack()
		var q wire.Query
		var w wire.Reply
		q.Parse(packet)
		q.Client = netip.MustParseAddrPort("192.0.2.1:53")
		w.Reset(nil)
		if s.ServeWire(t.Context(), &w, &q); w.Err() != errFailed {
			t.Errorf("wire lane: got %v", w.Err())
		}
	}
}
