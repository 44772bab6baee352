package plugin

import (
	"context"
	"fmt"
	"sync"
	"time"

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
	Rcode  string        `json:"rcode,omitempty"` // what it returned
	Error  string        `json:"error,omitempty"`
	Wrote  bool          `json:"wrote,omitempty"` // the reply, if nobody behind it did
	Notes  []string      `json:"notes,omitempty"` // what it says of itself

	parent int
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

// Lead notes the zone and the view of the block that the query was led to.
func (t *Trail) Lead(zone, view string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.zone, t.view = zone, view
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
	t.steps = append(t.steps, TrailStep{Plugin: h.Name(), Depth: depth, parent: parent})
	t.at = i
	t.mu.Unlock()
	begin := time.Now()
	rcode, err := h.ServeDNS(ctx, w, r)
	took := time.Since(begin)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.steps[i]
	s.Took, s.Own, s.Rcode = took, s.Own+took, rcodeText(rcode)
	if err != nil {
		s.Error = err.Error()
	}
	if parent >= 0 {
		t.steps[parent].Own -= took
	}
	t.at = parent
	return rcode, err
}

func rcodeText(rcode int) string {
	if s, ok := dns.RcodeToString[rcode]; ok {
		return s
	}
	return fmt.Sprint(rcode)
}
