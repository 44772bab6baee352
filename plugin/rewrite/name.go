package rewrite

import (
	"context"
	"errors"
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"
)

// nameRule changes the name that is asked for.
type nameRule struct {
	mode
	matcher
	remaps bool          // names of the reply that are the new one, or lie below it, become the old one
	fixed  ResponseRules // what is done with names of the reply before that
}

// Rewrite implements Rule.
func (r *nameRule) Rewrite(_ context.Context, state request.Request) (ResponseRules, Result) {
	name, ok := r.replace(nil, []byte(state.Name()))
	if !ok {
		return nil, RewriteIgnored
	}
	asked := state.QName()
	state.Req.Question[0].Name = string(name)
	if !r.remaps {
		return r.fixed, RewriteDone
	}
	return append(ResponseRules{&remap{from: name, to: []byte(asked)}}, r.fixed...), RewriteDone
}

// rewriteWire implements wireRule.
func (r *nameRule) rewriteWire(p *rewriting, q *wire.Query) verdict {
	var ok bool
	if p.next, ok = r.replace(p.next[:0], p.text(q)); !ok {
		return ignored
	}
	var err error
	if p.name, err = wire.AppendName(p.name[:0], p.next); err != nil {
		return illegal
	}
	if r.remaps {
		p.addRemap(p.next, q.Name())
	}
	p.rules = append(p.rules, r.fixed...)
	q.SetName(p.name)
	p.renamed = true
	p.current, p.next = p.next, p.current
	return done
}

// newNameRule reads [KIND] FROM TO [answer ...].
func newNameRule(m string, args []string) (Rule, error) {
	if len(args) < 2 {
		return nil, errors.New("too few arguments for a name rule")
	}
	kind, args, ok := splitKind(args, 2)
	if !ok {
		return nil, fmt.Errorf("name rule supports only exact, prefix, suffix, substring, and regex name matching, received: %s", kind)
	}
	if len(args) < 2 {
		return nil, errors.New("too few arguments for a name rule")
	}
	from, to, answers := args[0], normalize(args[1]), args[2:]
	r := &nameRule{mode: mode(m)}
	var err error
	if r.matcher, err = newMatcher(kind, from); err != nil {
		return nil, patternError(err, "invalid regex matching pattern: %s", from)
	}
	r.setTarget(to)
	groups := 0
	if r.pattern != nil {
		groups = r.pattern.NumSubexp()
	}
	if (kind == RegexMatch || kind == ExactMatch) && r.target.groups() > groups {
		return nil, errors.New("the rewrite regex pattern (to) uses more subexpressions than its corresponding matching regex pattern (from)")
	}
	r.warn(from)
	return r, r.setAnswers(answers)
}

// patternError is the error of a pattern: as it is if it is too long, else with the rule's own words.
func patternError(err error, format string, args ...any) error {
	if errors.Is(err, errPatternLength) {
		return err
	}
	return fmt.Errorf(format, args...)
}
