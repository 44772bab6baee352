package trace

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	ot "github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/ext"
	otlog "github.com/opentracing/opentracing-go/log"
)

// traceID and spanID are as W3C's Trace Context has them.
type (
	traceID [16]byte
	spanID  [8]byte
)

func (id traceID) String() string { return hex.EncodeToString(id[:]) }
func (id spanID) String() string  { return hex.EncodeToString(id[:]) }

// low is the lower half of a trace id, all that some collectors take.
func (id traceID) low() uint64  { return binary.BigEndian.Uint64(id[8:]) }
func (id spanID) value() uint64 { return binary.BigEndian.Uint64(id[:]) }

// newID fills b with a random number that is not 0.
func newID(b []byte) {
	for i := 0; i < len(b); i += 8 {
		binary.BigEndian.PutUint64(b[i:], rand.Uint64()|1)
	}
}

// spanContext is what goes along with a query from one process to the next.
type spanContext struct {
	trace     traceID // 0 if only unsampled is known
	span      spanID
	parent    spanID // that of span; 0 for none
	unsampled bool   // whoever began the trace does not want it
}

// ForeachBaggageItem implements ot.SpanContext. There is no baggage.
func (spanContext) ForeachBaggageItem(func(k, v string) bool) {}

// span is one piece of work on a query.
type span struct {
	tracer  *tracer
	context spanContext
	parent  spanID // 0 for none
	shared  bool   // the span is that of the client, too
	began   time.Time

	mu     sync.Mutex
	name   string
	tags   []tag
	events []event
	took   time.Duration
	ended  bool
}

type tag struct{ key, value string }

// event is something that happened at a time.
type event struct {
	at   time.Time
	text string
}

// Finish ends s, and hands it to the collector.
func (s *span) Finish() { s.FinishWithOptions(ot.FinishOptions{}) }

// FinishWithOptions is Finish, perhaps with another time.
func (s *span) FinishWithOptions(o ot.FinishOptions) {
	end := o.FinishTime
	if end.IsZero() {
		end = time.Now()
	}
	s.mu.Lock()
	done := s.ended
	s.ended, s.took = true, end.Sub(s.began)
	s.mu.Unlock()
	if !done && !s.context.unsampled {
		s.tracer.sender.take(s)
	}
}

// Context is what goes along with the query.
func (s *span) Context() ot.SpanContext { return s.context }

// SetOperationName sets the span's name.
func (s *span) SetOperationName(name string) ot.Span {
	s.mu.Lock()
	s.name = name
	s.mu.Unlock()
	return s
}

// SetTag sets a tag.
func (s *span) SetTag(key string, value any) ot.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprint(value)
	for i := range s.tags {
		if s.tags[i].key == key {
			s.tags[i].value = text
			return s
		}
	}
	s.tags = append(s.tags, tag{key, text})
	return s
}

// failed reports whether the span has the tag for errors.
func (s *span) failed() bool {
	for _, t := range s.tags {
		if t.key == string(ext.Error) {
			return t.value == "true"
		}
	}
	return false
}

// kind is what the tag for it says, such as "client", and whether the span is none of a call.
func (s *span) kind() (string, bool) {
	for _, t := range s.tags {
		if t.key == string(ext.SpanKind) {
			return t.value, true
		}
	}
	if s.name == rootName {
		return string(ext.SpanKindRPCServerEnum), true
	}
	return "", false
}

// LogFields notes something that happens now.
func (s *span) LogFields(fields ...otlog.Field) {
	text := ""
	for i, f := range fields {
		if i > 0 {
			text += " "
		}
		text += f.String()
	}
	s.mu.Lock()
	s.events = append(s.events, event{time.Now(), text})
	s.mu.Unlock()
}

// LogKV is LogFields with keys and values in turn.
func (s *span) LogKV(keyValues ...any) {
	if fields, err := otlog.InterleavedKVToFields(keyValues...); err == nil {
		s.LogFields(fields...)
	}
}

// SetBaggageItem, BaggageItem: there is no baggage.
func (s *span) SetBaggageItem(string, string) ot.Span { return s }
func (s *span) BaggageItem(string) string             { return "" }

// Tracer is the tracer that made s.
func (s *span) Tracer() ot.Tracer { return s.tracer }

// LogEvent, LogEventWithPayload and Log are old forms of LogFields.
func (s *span) LogEvent(e string) { s.LogFields(otlog.Event(e)) }
func (s *span) LogEventWithPayload(e string, p any) {
	s.LogFields(otlog.Event(e), otlog.Object("payload", p))
}
func (s *span) Log(d ot.LogData) { s.LogFields(otlog.Event(d.Event)) }
