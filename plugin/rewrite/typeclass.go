package rewrite

import (
	"context"
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// typeRule asks for another type, classRule in another class. The records of replies stay what they are.
type (
	typeRule struct {
		mode
		from, to uint16
	}
	classRule struct {
		mode
		from, to uint16
	}
)

// Rewrite implements Rule.
func (r *typeRule) Rewrite(_ context.Context, state request.Request) (ResponseRules, Result) {
	q := &state.Req.Question[0]
	if q.Qtype != r.from {
		return nil, RewriteIgnored
	}
	q.Qtype = r.to
	return nil, RewriteDone
}

// rewriteWire implements wireRule. The new type may be one that is no business of the wire lane.
func (r *typeRule) rewriteWire(_ *rewriting, q *wire.Query) verdict {
	if q.Type() != r.from {
		return ignored
	}
	return unpack
}

// Rewrite implements Rule.
func (r *classRule) Rewrite(_ context.Context, state request.Request) (ResponseRules, Result) {
	q := &state.Req.Question[0]
	if q.Qclass != r.from {
		return nil, RewriteIgnored
	}
	q.Qclass = r.to
	return nil, RewriteDone
}

// rewriteWire implements wireRule.
func (r *classRule) rewriteWire(_ *rewriting, q *wire.Query) verdict {
	if q.Class() != r.from {
		return ignored
	}
	return unpack
}

func newTypeRule(m string, args []string) (Rule, error) {
	codes, err := twoCodes("type", dns.StringToType, args)
	if err != nil {
		return nil, err
	}
	return &typeRule{mode(m), codes[0], codes[1]}, nil
}

func newClassRule(m string, args []string) (Rule, error) {
	codes, err := twoCodes("class", dns.StringToClass, args)
	if err != nil {
		return nil, err
	}
	return &classRule{mode(m), codes[0], codes[1]}, nil
}

// twoCodes reads FROM TO, which are mnemonics of any case.
func twoCodes(field string, known map[string]uint16, args []string) (codes [2]uint16, err error) {
	if len(args) != len(codes) {
		return codes, fmt.Errorf("%s rules must have exactly two arguments", field)
	}
	for i, word := range args {
		code, ok := known[strings.ToUpper(word)]
		if !ok {
			choice := corefile.TypeChoice
			if field == "class" {
				choice = corefile.ClassChoice
			}
			return codes, fmt.Errorf("invalid %s %q%s", field, word, choice(word))
		}
		codes[i] = code
	}
	return codes, nil
}
