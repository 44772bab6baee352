// Package trace follows queries through the plugins, and tells a collector how long each had it.
//
//	query ──every Nth──▶ span "servedns" ──▶ plugin.NextOrFailure: a span for each plugin
//	                                                 │ Finish
//	                     tracer.go ◀─────────────────┘
//	                         │ batches
//	                     sender.go ──▶ zipkin.go, datadog.go, otlp.go ──HTTP, gRPC──▶ collector
//
// Spans are those of OpenTracing, whose interface other plugins use; the tracer behind it is our own and knows trace contexts in the
// forms of W3C and of Zipkin (B3). A query never waits for the collector.
//
// Start at trace.ServeDNS.
package trace

import (
	"context"
	"sync/atomic"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	ot "github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/ext"
	otlog "github.com/opentracing/opentracing-go/log"

	"net/http"
)

const (
	pluginName = "trace"
	rootName   = "servedns"
)

var logger = log.NewWithPlugin(pluginName)

// trace is the plugin.
type trace struct {
	Next   plugin.Handler
	tracer *tracer
	tags   tagNames
	every  uint64 // which queries get a span; 0 is none

	count atomic.Uint64 // queries so far
	owed  atomic.Int64  // spans that queries in the wire lane left to later ones
}

// tagNames are what the tags of a query's span are called.
type tagNames struct{ name, qtype, rcode, proto, remote string }

var (
	slashTags = tagNames{"coredns.io/name", "coredns.io/type", "coredns.io/rcode", "coredns.io/proto", "coredns.io/remote"}
	atTags    = tagNames{"coredns.io@name", "coredns.io@type", "coredns.io@rcode", "coredns.io@proto", "coredns.io@remote"}
)

// Name is the plugin's name.
func (t *trace) Name() string { return pluginName }

// Tracer is what other plugins of the listener make spans with.
func (t *trace) Tracer() ot.Tracer { return t.tracer }

// sampled counts a query, and reports whether it gets a span.
func (t *trace) sampled() bool {
	if t.every == 0 {
		return false
	}
	if t.count.Add(1)%t.every == 0 {
		return true
	}
	return t.takeOwed()
}

// takeOwed takes a span that is owed, if there is one.
func (t *trace) takeOwed() bool {
	for {
		n := t.owed.Load()
		if n <= 0 {
			return false
		}
		if t.owed.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// label has metadata tell the trace of s.
func (s *span) label(ctx context.Context) {
	metadata.SetValueFunc(ctx, "trace/traceid", func() string { return s.context.trace.String() })
}

// ServeDNS makes a span of the query, if it is one that gets one.
func (t *trace) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	parent := ot.SpanFromContext(ctx)
	if parent != nil || !t.sampled() {
		if s, ok := parent.(*span); ok { // gRPC has joined the trace of its client
			s.label(ctx)
		}
		return plugin.NextOrFailure(pluginName, t.Next, ctx, w, r)
	}
	var options []ot.StartSpanOption
	if req, ok := ctx.Value(dnsserver.HTTPRequestKey{}).(*http.Request); ok {
		if parent, err := t.tracer.Extract(ot.HTTPHeaders, ot.HTTPHeadersCarrier(req.Header)); err == nil {
			options = append(options, ext.RPCServerOption(parent))
		}
	}
	s := t.tracer.StartSpan(rootName, options...).(*span)
	defer s.Finish()
	s.label(ctx)
	rec := dnstest.NewRecorder(w)
	code, err := plugin.NextOrFailure(pluginName, t.Next, ot.ContextWithSpan(ctx, s), rec, r)

	state := request.Request{Req: r, W: w}
	s.SetTag(t.tags.name, state.Name())
	s.SetTag(t.tags.qtype, state.Type())
	s.SetTag(t.tags.proto, state.Proto())
	s.SetTag(t.tags.remote, state.IP())
	written := rec.Rcode
	if rec.Msg == nil {
		written = code
	}
	s.SetTag(t.tags.rcode, rcode.ToString(written))
	if err != nil {
		ext.Error.Set(s, true)
		s.LogFields(otlog.Event("error"), otlog.Error(err))
	}
	return code, err
}

// ServeWire passes on queries that get no span. A query is counted when it is done, as it may be run more than once. One
// that was parked gets none: a plugin below has asked others for it, and would ask them again in the message lane.
func (t *trace) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if t.every == 0 {
		return plugin.NextWire(pluginName, t.Next, ctx, w, q)
	}
	if q.Awaited() == nil && (t.owed.Load() > 0 || (t.count.Load()+1)%t.every == 0) {
		return wire.Unpack
	}
	out := plugin.NextWire(pluginName, t.Next, ctx, w, q)
	if out == wire.Done && t.count.Add(1)%t.every == 0 {
		t.owed.Add(1) // others were quicker: the next one is to be followed
	}
	return out
}

// WireSelf returns t.
func (t *trace) WireSelf() plugin.Handler { return t }
