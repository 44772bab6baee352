package trace

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	ot "github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/ext"
)

// tracer makes spans.
type tracer struct {
	sender *sender
	shared bool // a server's span is that of its client
}

// StartSpan begins a span: below its parent, or as the first one of a trace.
func (t *tracer) StartSpan(name string, opts ...ot.StartSpanOption) ot.Span {
	var o ot.StartSpanOptions
	for _, opt := range opts {
		opt.Apply(&o)
	}
	s := &span{tracer: t, name: name, began: o.StartTime}
	if s.began.IsZero() {
		s.began = time.Now()
	}
	newID(s.context.span[:])
	for _, ref := range o.References {
		if parent, ok := ref.ReferencedContext.(spanContext); ok {
			s.context.trace, s.context.unsampled, s.parent = parent.trace, parent.unsampled, parent.span
			if t.shared && o.Tags[string(ext.SpanKind)] == ext.SpanKindRPCServerEnum && parent.span != (spanID{}) {
				s.context.span, s.parent, s.shared = parent.span, parent.parent, true
			}
			break
		}
	}
	if s.context.trace == (traceID{}) {
		newID(s.context.trace[:])
	}
	for k, v := range o.Tags {
		s.SetTag(k, v)
	}
	return s
}

// Keys of trace contexts in headers: of W3C's Trace Context, and of Zipkin (B3).
const (
	traceParent = "traceparent"
	b3Single    = "b3"
	b3Trace     = "x-b3-traceid"
	b3Span      = "x-b3-spanid"
	b3Parent    = "x-b3-parentspanid"
	b3Sampled   = "x-b3-sampled"
)

// Inject puts a trace context into headers, in both forms.
func (t *tracer) Inject(sc ot.SpanContext, format, carrier any) error {
	c, ok := sc.(spanContext)
	if !ok {
		return ot.ErrInvalidSpanContext
	}
	w, ok := carrier.(ot.TextMapWriter)
	if !ok {
		return ot.ErrInvalidCarrier
	}
	if format != ot.HTTPHeaders && format != ot.TextMap {
		return ot.ErrUnsupportedFormat
	}
	sampled := "1"
	if c.unsampled {
		sampled = "0"
	}
	w.Set(traceParent, "00-"+c.trace.String()+"-"+c.span.String()+"-0"+sampled)
	w.Set(b3Trace, c.trace.String())
	w.Set(b3Span, c.span.String())
	w.Set(b3Sampled, sampled)
	return nil
}

// Extract finds a trace context in headers, in either form; W3C's goes first.
func (t *tracer) Extract(format, carrier any) (ot.SpanContext, error) {
	r, ok := carrier.(ot.TextMapReader)
	if !ok {
		return nil, ot.ErrInvalidCarrier
	}
	if format != ot.HTTPHeaders && format != ot.TextMap {
		return nil, ot.ErrUnsupportedFormat
	}
	found := map[string]string{}
	err := r.ForeachKey(func(k, v string) error {
		found[strings.ToLower(k)] = v
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, read := range []func(map[string]string) (spanContext, bool){fromW3C, fromB3Single, fromB3} {
		if c, ok := read(found); ok {
			return c, nil
		}
	}
	return nil, ot.ErrSpanContextNotFound
}

// fromW3C reads VERSION-TRACE-PARENT-FLAGS.
func fromW3C(h map[string]string) (spanContext, bool) {
	parts := strings.Split(h[traceParent], "-")
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" {
		return spanContext{}, false
	}
	c, ok := parsed(parts[1], parts[2])
	flags, err := strconv.ParseUint(parts[3], 16, 8)
	c.unsampled = err == nil && flags&1 == 0
	return c, ok
}

// fromB3Single reads TRACE-SPAN[-SAMPLED[-PARENT]], or "0" alone.
func fromB3Single(h map[string]string) (spanContext, bool) {
	parts := strings.Split(h[b3Single], "-")
	switch len(parts) {
	case 1:
		return spanContext{unsampled: true}, parts[0] == "0"
	case 2:
		return parsed(parts[0], parts[1])
	}
	c, ok := parsed(parts[0], parts[1])
	c.unsampled = parts[2] == "0"
	if len(parts) > 3 {
		c.parent = parentOf(parts[3])
	}
	return c, ok
}

func fromB3(h map[string]string) (spanContext, bool) {
	c, ok := parsed(h[b3Trace], h[b3Span])
	if c.unsampled = h[b3Sampled] == "0" || h[b3Sampled] == "false"; !ok {
		return spanContext{unsampled: true}, c.unsampled
	}
	c.parent = parentOf(h[b3Parent])
	return c, true
}

// parentOf is the span of a number in hexadecimal digits, 0 if it is none.
func parentOf(text string) (id spanID) {
	if b, err := hex.DecodeString(text); err == nil && len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// parsed is the context of two numbers in hexadecimal digits. A trace's may be half as long.
func parsed(trace, span string) (c spanContext, ok bool) {
	if len(trace) == 16 {
		trace = strings.Repeat("0", 16) + trace
	}
	if len(trace) != 32 || len(span) != 16 {
		return c, false
	}
	if _, err := hex.Decode(c.trace[:], []byte(trace)); err != nil {
		return c, false
	}
	if _, err := hex.Decode(c.span[:], []byte(span)); err != nil {
		return c, false
	}
	return c, c.trace != traceID{} && c.span != spanID{}
}
