package trace

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
)

// datadog speaks the API of Datadog's agent: traces, each an array of spans, as JSON.
type datadog struct {
	url, service string
	rate         float64 // of traces that are kept for search; 0 is none
	client       *http.Client
}

type datadogSpan struct {
	TraceID  uint64             `json:"trace_id"`
	SpanID   uint64             `json:"span_id"`
	ParentID uint64             `json:"parent_id"`
	Name     string             `json:"name"`
	Resource string             `json:"resource"`
	Service  string             `json:"service"`
	Type     string             `json:"type"`
	Start    int64              `json:"start"` // nanoseconds
	Duration int64              `json:"duration"`
	Error    int32              `json:"error"`
	Meta     map[string]string  `json:"meta,omitempty"`
	Metrics  map[string]float64 `json:"metrics,omitempty"`
}

func (d *datadog) span(s *span) datadogSpan {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := datadogSpan{
		TraceID: s.context.trace.low(), SpanID: s.context.span.value(), ParentID: s.parent.value(),
		Name: s.name, Resource: s.name, Service: d.service, Type: "dns",
		Start: s.began.UnixNano(), Duration: s.took.Nanoseconds(), Meta: map[string]string{},
	}
	if s.failed() {
		out.Error = 1
	}
	for _, t := range s.tags {
		out.Meta[t.key] = t.value
	}
	for _, e := range s.events {
		out.Meta["error.message"] = e.text
	}
	if s.name == rootName {
		out.Metrics = map[string]float64{"_sampling_priority_v1": 1}
		if d.rate > 0 {
			out.Metrics["_dd1.sr.eausr"] = d.rate
		}
	}
	return out
}

func (d *datadog) export(ctx context.Context, all []*span) error {
	var order []traceID
	traces := map[traceID][]datadogSpan{}
	for _, s := range all {
		id := s.context.trace
		if traces[id] == nil {
			order = append(order, id)
		}
		traces[id] = append(traces[id], d.span(s))
	}
	out := make([][]datadogSpan, len(order))
	for i, id := range order {
		out[i] = traces[id]
	}
	body, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return post(ctx, d.client, http.MethodPut, d.url, "application/json", body, map[string]string{
		"X-Datadog-Trace-Count": strconv.Itoa(len(out)), "Datadog-Meta-Lang": "go",
	})
}

func (d *datadog) close() error {
	d.client.CloseIdleConnections()
	return nil
}
