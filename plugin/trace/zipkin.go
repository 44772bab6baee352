package trace

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/opentracing/opentracing-go/ext"
)

// zipkin speaks the second version of Zipkin's API: spans as JSON.
type zipkin struct {
	url    string
	local  zipkinEndpoint
	client *http.Client
}

type zipkinSpan struct {
	TraceID       string            `json:"traceId"`
	ID            string            `json:"id"`
	ParentID      string            `json:"parentId,omitempty"`
	Name          string            `json:"name"`
	Kind          string            `json:"kind,omitempty"`
	Timestamp     int64             `json:"timestamp"` // microseconds
	Duration      int64             `json:"duration"`
	Shared        bool              `json:"shared,omitempty"`
	LocalEndpoint zipkinEndpoint    `json:"localEndpoint"`
	Annotations   []zipkinEvent     `json:"annotations,omitempty"`
	Tags          map[string]string `json:"tags,omitempty"`
}

type zipkinEndpoint struct {
	ServiceName string `json:"serviceName"`
	IPv4        string `json:"ipv4,omitempty"`
	IPv6        string `json:"ipv6,omitempty"`
	Port        uint64 `json:"port,omitempty"`
}

// endpointOf is the server, with its address if its block is bound to one.
func endpointOf(service, host, port string) zipkinEndpoint {
	e := zipkinEndpoint{ServiceName: service}
	if a, err := netip.ParseAddr(host); err == nil {
		e.Port, _ = strconv.ParseUint(port, 10, 16)
		if a.Is4() {
			e.IPv4 = host
		} else {
			e.IPv6 = a.WithZone("").String()
		}
	}
	return e
}

type zipkinEvent struct {
	Timestamp int64  `json:"timestamp"`
	Value     string `json:"value"`
}

func (z *zipkin) span(s *span) zipkinSpan {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := zipkinSpan{
		TraceID: s.context.trace.String(), ID: s.context.span.String(), Name: s.name,
		Timestamp: s.began.UnixMicro(), Duration: max(s.took.Microseconds(), 1),
		LocalEndpoint: z.local,
	}
	kind, _ := s.kind()
	out.Kind, out.Shared = strings.ToUpper(kind), s.shared
	if s.parent != (spanID{}) {
		out.ParentID = s.parent.String()
	}
	for _, e := range s.events {
		out.Annotations = append(out.Annotations, zipkinEvent{e.at.UnixMicro(), e.text})
	}
	for _, t := range s.tags {
		if t.key == string(ext.SpanKind) {
			continue // it is Kind
		}
		if out.Tags == nil {
			out.Tags = map[string]string{}
		}
		out.Tags[t.key] = t.value
	}
	return out
}

func (z *zipkin) export(ctx context.Context, all []*span) error {
	spans := make([]zipkinSpan, len(all))
	for i, s := range all {
		spans[i] = z.span(s)
	}
	body, err := json.Marshal(spans)
	if err != nil {
		return err
	}
	return post(ctx, z.client, http.MethodPost, z.url, "application/json", body, nil)
}

func (z *zipkin) close() error {
	z.client.CloseIdleConnections()
	return nil
}
