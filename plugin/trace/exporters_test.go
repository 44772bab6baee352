package trace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

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

// Zipkin is told at which address the server block listens, if it is bound to one.
func TestZipkinEndpoint(t *testing.T) {
	for host, want := range map[string]string{
		"":             `{"serviceName":"coredns"}`,
		"192.0.2.7":    `{"serviceName":"coredns","ipv4":"192.0.2.7","port":53}`,
		"2001:db8::1":  `{"serviceName":"coredns","ipv6":"2001:db8::1","port":53}`,
		"fe80::1%eth0": `{"serviceName":"coredns","ipv6":"fe80::1","port":53}`,
	} {
		c := caddy.NewTestController("dns", "trace")
		config := dnsserver.GetConfig(c)
		config.ListenHosts, config.Port = []string{host}, "53"
		if err := setup(c); err != nil {
			t.Fatal(err)
		}
		z := config.Plugin[0](nil).(*trace).tracer.sender.to.(*zipkin)
		if got, err := json.Marshal(z.span(&span{}).LocalEndpoint); err != nil || string(got) != want {
			t.Errorf("bound to %q: %s, %v", host, got, err)
		}
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
