package trace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	golog "log"
	"net"
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
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
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

// requests is a collector over HTTP.
func requests(t *testing.T, status int) (url string, next func() (*http.Request, []byte)) {
	t.Helper()
	type request struct {
		r    *http.Request
		body []byte
	}
	got := make(chan request, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(status)
		got <- request{r, body}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() (*http.Request, []byte) {
		select {
		case r := <-got:
			return r.r, r.body
		case <-time.After(5 * time.Second):
			t.Fatal("no request came")
			return nil, nil
		}
	}
}

func exporterOf(t *testing.T, kind, endpoint string) exporter {
	t.Helper()
	s := defaults()
	s.kind, s.endpoint, s.service, s.analytics = kind, endpoint, "golden", 0.5
	to, err := s.exporter()
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestZipkin(t *testing.T) {
	url, next := requests(t, http.StatusAccepted)
	tr, flush := tracing(t, exporterOf(t, "zipkin", strings.TrimPrefix(url, "http://")), 1, chain(errors.New("x")))
	tr.ServeDNS(context.Background(), &test.ResponseWriter{}, query())
	flush()
	r, body := next()
	var all []zipkinSpan
	if err := json.Unmarshal(body, &all); err != nil || r.URL.Path != "/api/v2/spans" || r.Method != http.MethodPost || len(all) != 3 {
		t.Fatalf("%v %s %s: %s", err, r.Method, r.URL, body)
	}
	root, inner := all[2], all[0]
	if root.Kind != "SERVER" || root.LocalEndpoint.ServiceName != "golden" || root.Duration < 1 || len(root.TraceID) != 32 || root.Tags["error"] != "true" || len(root.Annotations) != 1 || inner.ParentID == "" || inner.TraceID != root.TraceID {
		t.Errorf("%s", body)
	}
}

func TestDatadog(t *testing.T) {
	url, next := requests(t, http.StatusOK)
	tr, flush := tracing(t, exporterOf(t, "datadog", url), 1, chain(nil))
	for range 2 {
		tr.ServeDNS(context.Background(), &test.ResponseWriter{}, query())
	}
	flush()
	r, body := next()
	var all [][]datadogSpan
	if err := json.Unmarshal(body, &all); err != nil || r.URL.Path != "/v0.4/traces" || r.Method != http.MethodPut || r.Header.Get("X-Datadog-Trace-Count") != "2" || len(all) != 2 || len(all[0]) != 3 {
		t.Fatalf("%v %s %s: %s", err, r.Method, r.URL, body)
	}
	if s := all[0][2]; s.Service != "golden" || s.Metrics["_dd1.sr.eausr"] != 0.5 || s.Meta["coredns.io/name"] == "" || s.ParentID != 0 || all[0][1].ParentID != s.SpanID {
		t.Errorf("%s", body)
	}
}

// check looks at what came over OTLP.
func check(t *testing.T, m *collector.ExportTraceServiceRequest) {
	t.Helper()
	rs := m.ResourceSpans[0]
	spans := rs.ScopeSpans[0].Spans
	if rs.Resource.Attributes[0].Value.GetStringValue() != "golden" || len(spans) != 3 {
		t.Fatal(m)
	}
	root := spans[2]
	if root.Kind != otlp.Span_SPAN_KIND_SERVER || root.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR || root.EndTimeUnixNano < root.StartTimeUnixNano || len(root.Attributes) < 5 || string(spans[1].ParentSpanId) != string(root.SpanId) {
		t.Error(root)
	}
}

func TestOTLPOverHTTP(t *testing.T) {
	url, next := requests(t, http.StatusOK)
	tr, flush := tracing(t, exporterOf(t, "otlp", url), 1, chain(errors.New("x")))
	tr.ServeDNS(context.Background(), &test.ResponseWriter{}, query())
	flush()
	r, body := next()
	m := new(collector.ExportTraceServiceRequest)
	if err := proto.Unmarshal(body, m); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		t.Fatal(err, r.URL)
	}
	check(t, m)
}

// traces is a collector over gRPC.
type traces struct {
	collector.UnimplementedTraceServiceServer
	got chan *collector.ExportTraceServiceRequest
}

func (s *traces) Export(_ context.Context, m *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.got <- m
	return new(collector.ExportTraceServiceResponse), nil
}

func TestOTLPOverGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &traces{got: make(chan *collector.ExportTraceServiceRequest, 1)}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, s)
	go server.Serve(l)
	defer server.Stop()
	tr, flush := tracing(t, exporterOf(t, "otlp", l.Addr().String()), 1, chain(errors.New("x")))
	tr.ServeDNS(context.Background(), &test.ResponseWriter{}, query())
	flush()
	select {
	case m := <-s.got:
		check(t, m)
	case <-time.After(5 * time.Second):
		t.Fatal("nothing came")
	}
}

// A collector that takes spans and never answers does not hold the end of the plugin up.
func TestSilentCollector(t *testing.T) {
	asked, over := make(chan bool, 10), make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		asked <- true
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	defer s.Close()
	defer close(over)
	send := newSender(exporterOf(t, "zipkin", s.URL), 1000, 1, time.Hour)
	send.start()
	tr := &trace{Next: chain(nil), tracer: &tracer{sender: send}, every: 1, tags: slashTags}
	tr.ServeDNS(context.Background(), &test.ResponseWriter{}, query())
	<-asked
	began := time.Now()
	send.end()
	if took := time.Since(began); took >= lastTime {
		t.Errorf("to begin to end took %v", took)
	}
	if err := send.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took >= sendTime {
		t.Errorf("took %v", took)
	}
}

// Without a collector, or with one that refuses, queries go on; what is too much is dropped.
func TestNoCollector(t *testing.T) {
	url, _ := requests(t, http.StatusInternalServerError)
	for _, to := range []exporter{exporterOf(t, "zipkin", url), exporterOf(t, "otlp", "127.0.0.1:1")} {
		s := newSender(to, 10, 5, time.Hour)
		tr := &trace{Next: chain(nil), tracer: &tracer{sender: s}, every: 1, tags: slashTags}
		began := time.Now()
		for range 100 {
			tr.ServeDNS(context.Background(), &test.ResponseWriter{}, query())
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		if n := s.dropped.Load(); n != 290 {
			t.Errorf("%d spans were dropped", n)
		}
		if err := to.export(context.Background(), []*span{<-s.queue}); err == nil {
			t.Error("no error")
		}
		to.close()
	}
}

// That batches fail is told at once, and then from time to time, in one line each.
func TestTroubleIsToldSeldom(t *testing.T) {
	out := new(lines)
	was := golog.Writer()
	golog.SetOutput(out)
	defer golog.SetOutput(was)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, "<html>\r\n<h1>Bad Gateway</h1>\r\n</html>\n")
	}))
	defer page.Close()
	send := newSender(exporterOf(t, "zipkin", page.URL), 1000, 1, time.Millisecond)
	send.start()
	tr := &trace{Next: chain(nil), tracer: &tracer{sender: send}, every: 1, tags: slashTags}
	for range 100 {
		tr.ServeDNS(context.Background(), &test.ResponseWriter{}, query())
	}
	send.stop()
	const first = "502 Bad Gateway: <html> <h1>Bad Gateway</h1> </html>"
	if n := strings.Count(out.String(), "failed to send the request: "); n < 1 || n > 4 || !strings.Contains(out.String(), first) {
		t.Errorf("told %d times of batches that fail:\n%s", n, out)
	}
}

func TestTrouble(t *testing.T) {
	var tr trouble
	at, one, two := time.Unix(1e9, 0), errors.New("one"), errors.New("two")
	for i, tc := range []struct {
		after time.Duration
		err   error
		want  string
	}{
		{0, nil, ""}, {0, one, "one"}, {time.Second, one, ""}, {9 * time.Second, two, ""}, {10 * time.Second, nil, "two (2 times in the last 10s)"},
		{11 * time.Second, one, ""}, {30 * time.Second, nil, "one"}, {60 * time.Second, nil, ""}, {61 * time.Second, two, "two"},
	} {
		got := ""
		if tc.err != nil {
			got = tr.failed(tc.err, at.Add(tc.after))
		} else {
			got = tr.due(at.Add(tc.after))
		}
		if got != tc.want {
			t.Errorf("%d: %q, want %q", i, got, tc.want)
		}
	}
	if tr.failed(one, at.Add(62*time.Second)); tr.line(at.Add(62*time.Second)) != "one" {
		t.Error("what is left at the end is not told")
	}
}

// lines is what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
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
