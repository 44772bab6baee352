package plugin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Trail is what happens to one query on its way through the message lane, plugin by plugin, for people who want to
// know. Who asks the question puts one into its context (WithTrail); plugins add what they know by Note. Without one
// both cost next to nothing.
type Trail struct {
	mu    sync.Mutex
	zone  string
	view  string
	steps []TrailStep
	at    int // index of the step that has the query, -1 before the first
}

// TrailStep is what one plugin did.
type TrailStep struct {
	Plugin string        `json:"plugin"`
	Depth  int           `json:"depth"`           // 0 for the first plugin of the chain
	Took   time.Duration `json:"tookNs"`          // with all that is behind it
	Own    time.Duration `json:"ownNs"`           // without that
	Rcode  string        `json:"rcode,omitempty"` // of its reply, or what it returned; "-" if it wants no reply
	Error  string        `json:"error,omitempty"`
	Wrote  bool          `json:"wrote,omitempty"` // a reply, and not somebody behind it
	Notes  []string      `json:"notes,omitempty"` // what it says of itself

	replied bool // a reply went by, of its own or from behind
}

// trailKey is the context key of a *Trail.
type trailKey struct{}

// WithTrail is ctx with a new Trail.
func WithTrail(ctx context.Context) (context.Context, *Trail) {
	t := &Trail{at: -1}
	return context.WithValue(ctx, trailKey{}, t), t
}

// TrailFrom is the Trail of ctx, nil if nobody wants one.
func TrailFrom(ctx context.Context) *Trail {
	t, _ := ctx.Value(trailKey{}).(*Trail)
	return t
}

// Note adds to the Trail of ctx what the plugin that has the query found or did. Arguments are only looked at if there
// is one.
func Note(ctx context.Context, format string, args ...any) {
	t := TrailFrom(ctx)
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at >= 0 {
		s := &t.steps[t.at]
		s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
	}
}

// Lead notes the zone and the view of the block that a query was led to. Of those that plugins ask on behalf of the one
// that the Trail is about, the plugin that asks has a note of it.
func (t *Trail) Lead(r *dns.Msg, zone, view string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at < 0 || len(r.Question) == 0 {
		t.zone, t.view = zone, view
		return
	}
	where := "block " + zone
	if view != "" {
		where += ", view " + view
	}
	q := r.Question[0]
	s := &t.steps[t.at]
	s.Notes = append(s.Notes, fmt.Sprintf("looks up %s %s in %s", q.Name, dns.Type(q.Qtype), where))
}

// Block is what Lead noted: "" if the query got to no block.
func (t *Trail) Block() (zone, view string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.zone, t.view
}

// Steps is a copy of what happened so far, in the order in which the plugins got the query.
func (t *Trail) Steps() []TrailStep {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]TrailStep(nil), t.steps...)
}

// Serve has h serve a query, and notes it.
func (t *Trail) Serve(ctx context.Context, h Handler, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	t.mu.Lock()
	i, parent, depth := len(t.steps), t.at, 0
	if parent >= 0 {
		depth = t.steps[parent].Depth + 1
	}
	t.steps = append(t.steps, TrailStep{Plugin: h.Name(), Depth: depth})
	t.at = i
	t.mu.Unlock()
	begin := time.Now()
	rcode, err := h.ServeDNS(ctx, &trailWriter{Wrapped{w}, t, i}, r)
	took := time.Since(begin)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.steps[i]
	s.Took, s.Own = took, s.Own+took
	switch {
	case !ClientWrite(rcode):
		s.Rcode = rcodeText(rcode)
	case !s.replied:
		s.Rcode = "-"
	}
	if err != nil {
		s.Error = err.Error()
	}
	if parent >= 0 {
		t.steps[parent].Own -= took
	}
	t.at = parent
	return rcode, err
}

// trailWriter notes what the plugin of a step writes.
type trailWriter struct {
	Wrapped
	trail *Trail
	step  int
}

// WriteMsg notes m, and passes it on.
func (w *trailWriter) WriteMsg(m *dns.Msg) error {
	w.trail.wrote(w.step, m.Rcode)
	return w.ResponseWriter.WriteMsg(m)
}

// Write notes a reply in wire form, and passes it on.
func (w *trailWriter) Write(b []byte) (int, error) {
	if len(b) > 3 {
		w.trail.wrote(w.step, int(b[3]&0xF))
	}
	return w.ResponseWriter.Write(b)
}

// TakeReply implements ReplyTaker.
func (w *trailWriter) TakeReply(reply *wire.Reply, r *dns.Msg) (taken bool, err error) {
	if taken, err = TakeReply(w.ResponseWriter, reply, r); taken {
		w.trail.wrote(w.step, reply.Rcode())
	}
	return taken, err
}

// wrote notes a reply that the plugin of a step wrote, or passed on from behind it.
func (t *Trail) wrote(step, rcode int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.steps[step]
	s.replied, s.Rcode, s.Wrote = true, rcodeText(rcode), s.Wrote || t.at == step
}

func rcodeText(rcode int) string {
	if s, ok := dns.RcodeToString[rcode]; ok {
		return s
	}
	return fmt.Sprint(rcode)
}
