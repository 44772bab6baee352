package trace

import (
	"context"
	"net/http"

	"github.com/opentracing/opentracing-go/ext"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// otlpMessage packs spans as OpenTelemetry's protocol has them.
func otlpMessage(service string, all []*span) *collector.ExportTraceServiceRequest {
	spans := make([]*otlp.Span, len(all))
	for i, s := range all {
		spans[i] = otlpSpan(s)
	}
	return &collector.ExportTraceServiceRequest{ResourceSpans: []*otlp.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: []*common.KeyValue{attribute("service.name", service)}},
		ScopeSpans: []*otlp.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "coredns"}, Spans: spans}},
	}}}
}

// otlpKinds are the kinds of spans, by OpenTracing's names. That of others is not told.
var otlpKinds = map[string]otlp.Span_SpanKind{
	string(ext.SpanKindRPCServerEnum): otlp.Span_SPAN_KIND_SERVER, string(ext.SpanKindRPCClientEnum): otlp.Span_SPAN_KIND_CLIENT,
	string(ext.SpanKindProducerEnum): otlp.Span_SPAN_KIND_PRODUCER, string(ext.SpanKindConsumerEnum): otlp.Span_SPAN_KIND_CONSUMER,
}

func otlpSpan(s *span) *otlp.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &otlp.Span{
		TraceId: s.context.trace[:], SpanId: s.context.span[:], Name: s.name, Kind: otlp.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: uint64(s.began.UnixNano()), EndTimeUnixNano: uint64(s.began.Add(s.took).UnixNano()),
		Flags: 1, // sampled
	}
	if kind, ok := s.kind(); ok {
		out.Kind = otlpKinds[kind]
	}
	if s.parent != (spanID{}) {
		out.ParentSpanId = s.parent[:]
	}
	if s.failed() {
		out.Status = &otlp.Status{Code: otlp.Status_STATUS_CODE_ERROR}
	}
	for _, t := range s.tags {
		out.Attributes = append(out.Attributes, attribute(t.key, t.value))
	}
	for _, e := range s.events {
		out.Events = append(out.Events, &otlp.Span_Event{TimeUnixNano: uint64(e.at.UnixNano()), Name: e.text})
	}
	return out
}

func attribute(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

// otlpHTTP sends them over HTTP.
type otlpHTTP struct {
	url, service string
	client       *http.Client
}

func (o *otlpHTTP) export(ctx context.Context, all []*span) error {
	body, err := proto.Marshal(otlpMessage(o.service, all))
	if err != nil {
		return err
	}
	return post(ctx, o.client, http.MethodPost, o.url, "application/x-protobuf", body, nil)
}

func (o *otlpHTTP) close() error {
	o.client.CloseIdleConnections()
	return nil
}

// otlpGRPC sends them over gRPC.
type otlpGRPC struct {
	service string
	conn    *grpc.ClientConn
}

func (o *otlpGRPC) export(ctx context.Context, all []*span) error {
	_, err := collector.NewTraceServiceClient(o.conn).Export(ctx, otlpMessage(o.service, all))
	return err
}

func (o *otlpGRPC) close() error { return o.conn.Close() }
