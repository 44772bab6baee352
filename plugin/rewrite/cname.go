package rewrite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// UpstreamInt looks names up by way of the server. The reply may be nil.
type UpstreamInt interface {
	Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error)
}

// cnameRule leads aliases to another target, which it looks up. It is for each query: what it does shows in the reply.
type cnameRule struct {
	mode
	matcher
	upstream UpstreamInt
}

// Rewrite implements Rule.
func (r *cnameRule) Rewrite(ctx context.Context, state request.Request) (ResponseRules, Result) {
	return ResponseRules{&cnameEdit{rule: r, ctx: ctx, state: state}}, RewriteDone
}

// rewriteWire implements wireRule. A lookup takes the message, and whether it will be needed is not known before.
func (r *cnameRule) rewriteWire(*rewriting, *wire.Query) verdict { return unpack }

// maxLookups is how often a rule may meet what its own lookup has led to.
const maxLookups = 8

// cnameEdit is what a cnameRule does with the reply to one query.
type cnameEdit struct {
	rule  *cnameRule
	ctx   context.Context
	state request.Request
	led   bool // an alias of the reply has another target now
}

// RewriteResponse implements ResponseRule. It leads rr elsewhere if it is an alias of the answer that the rule is for: what
// stood behind it is replaced by what the new target's answer holds.
func (e *cnameEdit) RewriteResponse(res *dns.Msg, rr dns.RR) {
	alias, ok := rr.(*dns.CNAME)
	if !ok {
		return
	}
	to, ok := e.rule.replace(nil, []byte(strings.ToLower(alias.Target)))
	if !ok || !legal(string(to)) {
		return
	}
	for i, answer := range res.Answer {
		if answer != rr {
			continue
		}
		target := dns.Fqdn(string(to))
		up, err := e.lookup(target)
		if err != nil {
			log.Errorf("upstream lookup failed: %v", err)
			return
		}
		if up == nil {
			log.Errorf("upstream lookup returned nil")
			return
		}
		alias.Target, e.led = target, true
		res.Answer = append(res.Answer[:i+1:i+1], up.Answer...)
		res.Truncated = up.Truncated
		return
	}
}

var errLoop = errors.New("the target leads to the rule again and again")

// lookup asks the server for the new target.
func (e *cnameEdit) lookup(target string) (*dns.Msg, error) {
	ctx, ok := upstream.Again(e.ctx, maxLookups-1)
	if !ok {
		return nil, fmt.Errorf("%s: %w", target, errLoop)
	}
	return e.rule.upstream.Lookup(ctx, e.state, target, e.state.QType())
}

// newCNAMERule reads [KIND] FROM TO.
func newCNAMERule(m string, args []string) (Rule, error) {
	if len(args) < 2 {
		return nil, fmt.Errorf("too few (%d) arguments for a cname rule", len(args))
	}
	kind, args, ok := splitKind(args, 2)
	if !ok {
		return nil, fmt.Errorf("unknown cname rewrite type: %s", kind)
	}
	if len(args) < 2 {
		return nil, fmt.Errorf("too few (%d) arguments for a cname rule", len(args))
	}
	match, err := newMatcher(kind, args[0])
	switch {
	case errors.Is(err, errPatternLength):
		return nil, replyPatternError(err, "cname", args[0])
	case err != nil:
		return nil, fmt.Errorf("invalid cname rewrite regex pattern: %w", err)
	}
	if kind == ExactMatch {
		match.setTarget(normalize(args[1]))
	} else if kind == SubstringMatch && args[0] == "" { // which stands in each name without end
		return nil, errors.New("empty substring in a cname rule: must have a character at least")
	} else {
		match.from = strings.ToLower(presented(args[0])) // as it stands: without a final dot it may match within the name
		match.setTarget(strings.ToLower(presented(args[1])))
	}
	return &cnameRule{mode: mode(m), matcher: match, upstream: upstream.New()}, nil
}
