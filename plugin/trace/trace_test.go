package trace

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	pkgtrace "github.com/coredns/coredns/plugin/pkg/trace"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	ot "github.com/opentracing/opentracing-go"
)

var _ pkgtrace.Trace = new(trace)

// kept keeps spans instead of sending them.
type kept struct {
	mu  sync.Mutex
	all []*span
}

func (k *kept) export(_ context.Context, all []*span) error {
	k.mu.Lock()
	k.all = append(k.all, all...)
	k.mu.Unlock()
	return nil
}

func (k *kept) close() error { return nil }

// tracing is a trace whose spans go to to. flush sends them.
func tracing(t testing.TB, to exporter, every uint64, next plugin.Handler) (tr *trace, flush func()) {
	t.Helper()
	s := newSender(to, 1000, 100, time.Hour)
	s.start()
	return &trace{Next: next, tracer: &tracer{sender: s}, every: every, tags: slashTags}, func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	}
}

// chain is a plugin of a third party, above one that answers.
func chain(err error) plugin.Handler {
	return plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		last := plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			if err != nil {
				return dns.RcodeServerFailure, err
			}
			return 0, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNameError))
		})
		return plugin.NextOrFailure("outer", last, ctx, w, r)
	})
}

func query() *dns.Msg { return new(dns.Msg).SetQuestion("www.example.org.", dns.TypeMX) }

func TestSpans(t *testing.T) {
	to := new(kept)
	tr, flush := tracing(t, to, 1, chain(nil))
	ctx := metadata.ContextWithMetadata(context.Background())
	if _, err := tr.ServeDNS(ctx, &test.ResponseWriter{TCP: true}, query()); err != nil {
		t.Fatal(err)
	}
	flush()
	if len(to.all) != 3 {
		t.Fatalf("%d spans", len(to.all))
	}
	inner, outer, root := to.all[0], to.all[1], to.all[2]
	if root.name != rootName || root.parent != (spanID{}) || outer.parent != root.context.span || inner.parent != outer.context.span || inner.context.trace != root.context.trace {
		t.Errorf("%+v %+v %+v", root, outer, inner)
	}
	got := map[string]string{}
	for _, tag := range root.tags {
		got[tag.key] = tag.value
	}
	for key, want := range map[string]string{"coredns.io/name": "www.example.org.", "coredns.io/type": "MX", "coredns.io/rcode": "NXDOMAIN", "coredns.io/proto": "tcp", "coredns.io/remote": "10.240.0.1"} {
		if got[key] != want {
			t.Errorf("%s: %q, want %q", key, got[key], want)
		}
	}
	if f := metadata.ValueFunc(ctx, "trace/traceid"); f == nil || f() != root.context.trace.String() {
		t.Error("no trace id")
	}
}

// A query that its transport has made part of a trace already, as gRPC does, has the label, too.
func TestTraceIDOfJoinedTrace(t *testing.T) {
	tr, flush := tracing(t, new(kept), 0, chain(nil))
	defer flush()
	s := tr.tracer.StartSpan("joined").(*span)
	ctx := ot.ContextWithSpan(metadata.ContextWithMetadata(context.Background()), s)
	tr.ServeDNS(ctx, &test.ResponseWriter{}, query())
	s.Finish()
	if f := metadata.ValueFunc(ctx, "trace/traceid"); f == nil || f() != s.context.trace.String() {
		t.Error("no trace id")
	}
}

func TestErrorsAreTagged(t *testing.T) {
	to := new(kept)
	tr, flush := tracing(t, to, 1, chain(errors.New("as it should")))
	tr.ServeDNS(context.Background(), &test.ResponseWriter{}, query())
	flush()
	root := to.all[len(to.all)-1]
	if !root.failed() || len(root.events) != 1 || !strings.Contains(root.events[0].text, "as it should") {
		t.Errorf("%+v", root)
	}
}

// A query that comes with a span is part of that one.
func TestSpanOfTheContext(t *testing.T) {
	to := new(kept)
	tr, flush := tracing(t, to, 1, chain(nil))
	s := tr.Tracer().StartSpan("above")
	tr.ServeDNS(ot.ContextWithSpan(context.Background(), s), &test.ResponseWriter{}, query())
	s.Finish()
	s.Finish()
	flush()
	if len(to.all) != 3 || to.all[2].name != "above" || to.all[1].parent != to.all[2].context.span {
		t.Errorf("%d spans", len(to.all))
	}
}

func TestParentOverHTTP(t *testing.T) {
	const id, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for name, headers := range map[string]map[string]string{
		"W3C":       {"Traceparent": "00-" + id + "-" + parent + "-01"},
		"B3":        {"X-B3-TraceId": id, "X-B3-SpanId": parent},
		"B3 in one": {"B3": id + "-" + parent + "-1"},
	} {
		to := new(kept)
		tr, flush := tracing(t, to, 1, chain(nil))
		r := httptest.NewRequest(http.MethodGet, "/dns-query", nil)
		for k, v := range headers {
			r.Header.Set(k, v)
		}
		tr.ServeDNS(context.WithValue(context.Background(), dnsserver.HTTPRequestKey{}, r), &test.ResponseWriter{}, query())
		flush()
		root := to.all[len(to.all)-1]
		if root.context.trace.String() != id || root.parent.String() != parent {
			t.Errorf("%s: %+v", name, root)
		}
	}
}

// What a client has decided not to sample is not told, by whichever headers it says so, and those who are asked on
// behalf of it are told so, too.
func TestUnsampledParent(t *testing.T) {
	const id, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for name, headers := range map[string]map[string]string{
		"W3C":           {"Traceparent": "00-" + id + "-" + parent + "-00"},
		"B3":            {"X-B3-TraceId": id, "X-B3-SpanId": parent, "X-B3-Sampled": "0"},
		"B3 of old":     {"X-B3-TraceId": id, "X-B3-SpanId": parent, "X-B3-Sampled": "false"},
		"B3 in one":     {"B3": id + "-" + parent + "-0"},
		"B3 alone":      {"X-B3-Sampled": "0"},
		"B3 in one '0'": {"B3": "0"},
	} {
		to := new(kept)
		asked := false
		tr, flush := tracing(t, to, 1, plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			asked = true
			h := http.Header{}
			s := ot.SpanFromContext(ctx)
			if err := s.Tracer().Inject(s.Context(), ot.HTTPHeaders, ot.HTTPHeadersCarrier(h)); err != nil {
				t.Error(err)
			}
			if h.Get("X-B3-Sampled") != "0" || !strings.HasSuffix(h.Get("Traceparent"), "-00") || len(h.Get("X-B3-TraceId")) != 32 {
				t.Errorf("%s: handed on as %v", name, h)
			}
			return chain(nil).ServeDNS(ctx, w, r)
		}))
		r := httptest.NewRequest(http.MethodGet, "/dns-query", nil)
		for k, v := range headers {
			r.Header.Set(k, v)
		}
		tr.ServeDNS(context.WithValue(context.Background(), dnsserver.HTTPRequestKey{}, r), &test.ResponseWriter{}, query())
		flush()
		if len(to.all) != 0 || !asked {
			t.Errorf("%s: %d spans", name, len(to.all))
		}
	}
}

// With client_server the query's span is that of the client, as Zipkin's older clients have it.
func TestSharedSpan(t *testing.T) {
	const id, parent, above = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
	url, next := requests(t, http.StatusAccepted)
	tr, flush := tracing(t, exporterOf(t, "zipkin", url), 1, chain(nil))
	tr.tracer.shared = true
	r := httptest.NewRequest(http.MethodGet, "/dns-query", nil)
	for k, v := range map[string]string{"X-B3-TraceId": id, "X-B3-SpanId": parent, "X-B3-ParentSpanId": above, "X-B3-Sampled": "1"} {
		r.Header.Set(k, v)
	}
	tr.ServeDNS(context.WithValue(context.Background(), dnsserver.HTTPRequestKey{}, r), &test.ResponseWriter{}, query())
	flush()
	_, body := next()
	var all []zipkinSpan
	if err := json.Unmarshal(body, &all); err != nil || len(all) != 3 {
		t.Fatalf("%v: %s", err, body)
	}
	root, outer := all[2], all[1]
	if !root.Shared || root.ID != parent || root.ParentID != above || root.TraceID != id || root.Kind != "SERVER" || root.Tags["span.kind"] != "" || outer.Shared || outer.ParentID != parent {
		t.Errorf("%s", body)
	}
}

func TestContexts(t *testing.T) {
	tr := new(tracer)
	c := spanContext{}
	newID(c.trace[:])
	newID(c.span[:])
	h := http.Header{}
	if err := tr.Inject(c, ot.HTTPHeaders, ot.HTTPHeadersCarrier(h)); err != nil {
		t.Fatal(err)
	}
	for _, only := range []string{"Traceparent", "X-B3-"} {
		some := http.Header{}
		for k, v := range h {
			if strings.HasPrefix(strings.ToLower(k), strings.ToLower(only)) {
				some[k] = v
			}
		}
		if got, err := tr.Extract(ot.HTTPHeaders, ot.HTTPHeadersCarrier(some)); err != nil || got != c {
			t.Errorf("%s: %v %v", only, got, err)
		}
	}
	for _, odd := range []map[string]string{
		{}, {"traceparent": "00-x-y-01"}, {"traceparent": "ff-" + c.trace.String() + "-" + c.span.String() + "-01"}, {"traceparent": "00-" + strings.Repeat("0", 32) + "-" + c.span.String() + "-01"},
		{"b3": "1"}, {"x-b3-traceid": "zz", "x-b3-spanid": c.span.String()},
	} {
		if got, err := tr.Extract(ot.TextMap, ot.TextMapCarrier(odd)); err != ot.ErrSpanContextNotFound {
			t.Errorf("%v: %v %v", odd, got, err)
		}
	}
	if tr.Inject(c, ot.Binary, nil) == nil || tr.Inject(nil, ot.TextMap, ot.TextMapCarrier{}) == nil {
		t.Error("no error")
	}
	if _, err := tr.Extract(ot.Binary, nil); err == nil {
		t.Error("no error")
	}
}

// source answers in the wire lane.
type source struct{ plugin.Handler }

func (s *source) WireSelf() plugin.Handler { return s }

func (s *source) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	w.Begin(q)
	return wire.Done
}

// Every Nth query gets a span, whichever lanes they take.
func TestSampling(t *testing.T) {
	for every, want := range map[uint64]int{0: 0, 1: 120, 2: 60, 7: 17} {
		to := new(kept)
		tr, flush := tracing(t, to, every, &source{test.NextHandler(0, nil)})
		b, _ := query().Pack()
		unpacked := 0
		for range 120 {
			var q wire.Query
			var w wire.Reply
			w.Reset(nil)
			if !q.Parse(b) {
				t.Fatal("not eligible")
			}
			if tr.ServeWire(context.Background(), &w, &q) == wire.Unpack {
				unpacked++
				tr.ServeDNS(context.Background(), &test.ResponseWriter{}, query())
			}
		}
		flush()
		roots := 0
		for _, s := range to.all {
			if s.name == rootName {
				roots++
			}
		}
		if roots != want || unpacked != want {
			t.Errorf("every %d: %d spans, %d unpacked, want %d", every, roots, unpacked, want)
		}
	}
}

// waiting is a source that parks each query once, as forward does when it has asked an upstream.
type waiting struct {
	plugin.Handler
	asked int
	eventloop.Ending
}

func (s *waiting) WireSelf() plugin.Handler { return s }

func (s *waiting) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if q.Awaited() == nil {
		s.asked++
		q.Await(s)
		return wire.Park
	}
	w.Begin(q)
	return wire.Done
}

// A query that was parked ends where it began, whatever its number is by then: the upstream has been asked. Another one gets its span.
func TestParkedQueriesStay(t *testing.T) {
	tr, flush := tracing(t, new(kept), 2, &waiting{Handler: test.NextHandler(0, nil)})
	defer flush()
	b, _ := query().Pack()
	var queries [3]wire.Query
	outcomes := make([]wire.Outcome, 0, 6)
	serve := func(i int) {
		w := new(wire.Reply)
		w.Reset(nil)
		outcomes = append(outcomes, tr.ServeWire(context.Background(), w, &queries[i]))
	}
	for i := range queries {
		if !queries[i].Parse(b) {
			t.Fatal("not eligible")
		}
	}
	serve(0)
	serve(1)
	serve(0) // the first that is counted
	serve(1) // the second: it was to get the span
	serve(2) // gets it instead
	want := []wire.Outcome{wire.Park, wire.Park, wire.Done, wire.Done, wire.Unpack}
	if !slices.Equal(outcomes, want) {
		t.Errorf("got %v, want %v", outcomes, want)
	}
}

func BenchmarkNotSampled(b *testing.B) {
	tr, flush := tracing(b, new(kept), 1<<40, &source{})
	defer flush()
	packet, _ := query().Pack()
	var q wire.Query
	var w wire.Reply
	b.ReportAllocs()
	for b.Loop() {
		q.Parse(packet)
		w.Reset(nil)
		if tr.ServeWire(context.Background(), &w, &q) != wire.Done {
			b.Fatal("not done")
		}
	}
}
