package vars

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func query(t testing.TB, name string, qtype uint16, do bool) *wire.Query {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, qtype)
	if do {
		m.SetEdns0(1232, true)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	q := new(wire.Query)
	if !q.Parse(b) {
		t.Fatal("not eligible")
	}
	q.Client = netip.MustParseAddrPort("192.0.2.1:53")
	q.Arrival = time.Now()
	return q
}

// scrape is all series of a server, by name and labels.
func scrape(t testing.TB, server string) map[string]*dto.Metric {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.Metric{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			mine := false
			for _, l := range m.Label {
				if l.GetName() == "server" {
					mine = l.GetValue() == server
					continue
				}
				labels = append(labels, l.GetValue())
			}
			if mine {
				all[f.GetName()+" "+strings.Join(labels, " ")] = m
			}
		}
	}
	return all
}

// What loops count is exported exactly as if it had been counted by the vectors, classic and native.
func TestLanesCountAsVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	lanes := []*eventloop.Loop{eventloop.New(), eventloop.New()}
	s := SeriesOf("lanes", "example.org.", "view")
	direct := Series{server: "vectors", zone: "example.org.", view: "view"}
	for round := range 3000 {
		qtype := []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeHINFO, dns.TypeMX, 4711}[r.IntN(5)]
		q := query(t, strings.Repeat("a", 1+r.IntN(60))+".example.org.", qtype, r.IntN(3) == 0)
		if r.IntN(2) == 0 {
			q.Client = netip.MustParseAddrPort("[2001:db8::1]:53")
		}
		if r.IntN(4) == 0 {
			q.Proto = wire.TCP
		}
		w := new(wire.Reply)
		w.Reset(make([]byte, 0, 4096))
		switch r.IntN(10) {
		case 0:
			w.Fail(wire.ServFail, nil)
		case 1:
			w.Drop()
		default:
			w.Begin(q)
			w.SetRcode(r.IntN(2) * 3)
			w.SetWriter([]string{"file", "cache"}[r.IntN(2)])
			for range r.IntN(1 << r.IntN(9)) {
				w.Addr(wire.Answer, q.Name(), 5, netip.MustParseAddr("192.0.2.1"))
			}
		}
		d := time.Duration(r.ExpFloat64() * float64(time.Millisecond))
		if round%50 == 0 {
			d = 0
		}
		loop := lanes[round%2]
		loop.Enter()
		q.SetLoop(loop)
		s.Count(q, w)
		loop.Done(d)
		loop.Leave()
		o := outcomeOf(w)
		direct.countVectors(q, &o)
	}
	got, want := scrape(t, "lanes"), scrape(t, "vectors")
	if len(got) != len(want) || len(got) < 20 {
		t.Fatalf("%d series, want %d", len(got), len(want))
	}
	for name, m := range want {
		g := got[name]
		if g == nil {
			t.Errorf("no %s", name)
			continue
		}
		if m.Counter != nil && g.Counter.GetValue() != m.Counter.GetValue() {
			t.Errorf("%s: %v, want %v", name, g.Counter.GetValue(), m.Counter.GetValue())
		}
		if m.Histogram == nil {
			continue
		}
		if strings.Contains(name, "duration") {
			if g.Histogram.GetSampleCount() != m.Histogram.GetSampleCount() {
				t.Errorf("%s: %d durations, want %d", name, g.Histogram.GetSampleCount(), m.Histogram.GetSampleCount())
			}
			continue
		}
		if a, b := describe(g.Histogram), describe(m.Histogram); a != b {
			t.Errorf("%s:\n%s\nwant\n%s", name, a, b)
		}
	}
}

func describe(h *dto.Histogram) string {
	var b strings.Builder
	fmt.Fprintf(&b, "n %d sum %v zero %d schema %d\n", h.GetSampleCount(), h.GetSampleSum(), h.GetZeroCount(), h.GetSchema())
	for _, k := range h.Bucket {
		fmt.Fprintf(&b, "%v:%d ", k.GetUpperBound(), k.GetCumulativeCount())
	}
	for key, n := range sortedSpans(h) {
		if n != 0 {
			fmt.Fprintf(&b, "%d=%d ", key, n)
		}
	}
	return b.String()
}

func sortedSpans(h *dto.Histogram) func(func(int, int64) bool) {
	counts := spans(h.PositiveSpan, h.PositiveDelta)
	return func(yield func(int, int64) bool) {
		for k := -2000; k < 2000; k++ {
			if !yield(k, counts[k]) {
				return
			}
		}
	}
}

// Durations go to the same buckets as the client library puts them.
func TestDurations(t *testing.T) {
	s := SeriesOf("durations", ".", "")
	loop := eventloop.New()
	vec := RequestDuration.WithLabelValues("durations-direct", ".", "")
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 2000 {
		d := time.Duration(r.ExpFloat64() * float64(time.Millisecond))
		switch i % 100 {
		case 0:
			d = 0
		case 1:
			d = time.Duration(1) << (i / 100)
		case 2:
			d = 250 * time.Microsecond << (i / 100) // a bound
		}
		loop.Enter()
		for range 1 + i%3 {
			q, w := query(t, "a.", dns.TypeA, false), new(wire.Reply)
			w.Drop()
			q.SetLoop(loop)
			s.Count(q, w)
			vec.Observe(d.Seconds())
		}
		loop.Done(d)
		loop.Leave()
	}
	got := scrape(t, "durations")["coredns_dns_request_duration_seconds  ."]
	want := scrape(t, "durations-direct")["coredns_dns_request_duration_seconds  ."]
	if got == nil || want == nil {
		t.Fatalf("%v %v", scrape(t, "durations"), got)
	}
	ss, ws := got.Histogram.GetSampleSum(), want.Histogram.GetSampleSum()
	if ss < ws*0.999 || ss > ws*1.001 {
		t.Errorf("sum %v, want %v", ss, ws)
	}
	got.Histogram.SampleSum = want.Histogram.SampleSum // added up in another order
	if a, b := describe(got.Histogram), describe(want.Histogram); a != b {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
}

// meanwhiles counts the runs of TestScrapeMeanwhile.
var meanwhiles atomic.Int32

// A scrape while loops count sees each query whole, and none twice.
func TestScrapeMeanwhile(t *testing.T) {
	server := fmt.Sprintf("meanwhile%d", meanwhiles.Add(1)) // what is counted begins at 0
	s := SeriesOf(server, ".", "")
	ctx, cancel := context.WithCancel(context.Background())
	const loops, rounds = 3, 3000
	done := make(chan struct{}, loops)
	for range loops {
		go func() {
			loop := eventloop.New()
			defer loop.Close()
			q, w := query(t, "a.", dns.TypeA, false), new(wire.Reply)
			w.Drop()
			for range rounds {
				loop.Enter()
				q.SetLoop(loop)
				s.Count(q, w)
				s.Count(q, w)
				loop.Done(time.Microsecond)
				loop.Leave()
			}
			done <- struct{}{}
		}()
	}
	go func() {
		for range loops {
			<-done
		}
		cancel()
	}()
	for ctx.Err() == nil {
		if m := scrape(t, server)["coredns_dns_unanswered_total  ."]; m != nil && int(m.Counter.GetValue())%2 != 0 {
			t.Fatal("a batch was seen in its middle")
		}
	}
	all := scrape(t, server)
	if n := all["coredns_dns_unanswered_total  ."].Counter.GetValue(); n != 2*loops*rounds {
		t.Errorf("counted %v of %d", n, 2*loops*rounds)
	}
	if n := all["coredns_dns_request_duration_seconds  ."].Histogram.GetSampleCount(); n != 2*loops*rounds {
		t.Errorf("%d durations", n)
	}
}

func BenchmarkCount(b *testing.B) {
	s := SeriesOf("bench", ".", "")
	loop := eventloop.New()
	q, w := query(b, "www.example.org.", dns.TypeA, false), new(wire.Reply)
	w.Reset(make([]byte, 0, 512))
	w.Begin(q)
	w.Addr(wire.Answer, q.Name(), 5, netip.MustParseAddr("192.0.2.1"))
	w.SetWriter("cache")
	loop.Enter()
	q.SetLoop(loop)
	b.ReportAllocs()
	for b.Loop() {
		s.Count(q, w)
	}
}
