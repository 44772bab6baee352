package rewrite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// rcodeRule changes the return code of replies.
type rcodeRule struct {
	mode
	matcher
	reply ResponseRules // one rcodeEdit
}

// Rewrite implements Rule.
func (r *rcodeRule) Rewrite(_ context.Context, state request.Request) (ResponseRules, Result) {
	if !r.matches([]byte(state.Name())) {
		return nil, RewriteIgnored
	}
	return r.reply, RewriteDone
}

// rewriteWire implements wireRule. Extended return codes are no business of the wire lane.
func (r *rcodeRule) rewriteWire(p *rewriting, q *wire.Query) verdict {
	if !r.matches(p.text(q)) {
		return ignored
	}
	if e := r.reply[0].(*rcodeEdit); e.from > maxPlainRcode || e.to > maxPlainRcode {
		return unpack
	}
	p.rules = append(p.rules, r.reply...)
	return done
}

// maxPlainRcode is the greatest return code that the header holds (RFC 6891 §6.1.3); maxRcode, the greatest there is.
const (
	maxPlainRcode = 15
	maxRcode      = dns.RcodeBadCookie
)

// rcodeEdit is what becomes of a return code.
type rcodeEdit struct {
	untouched
	from, to int
}

func (e *rcodeEdit) rcode(rcode int) int {
	if rcode == e.from {
		return e.to
	}
	return rcode
}

// RewriteResponse implements ResponseRule. It is about the message, whichever record comes with it.
func (e *rcodeEdit) RewriteResponse(res *dns.Msg, _ dns.RR) { res.Rcode = e.rcode(res.Rcode) }

// newRcodeRule reads [KIND] NAME FROM TO.
func newRcodeRule(m string, args []string) (Rule, error) {
	if len(args) < 3 {
		return nil, fmt.Errorf("too few (%d) arguments for a rcode rule", len(args))
	}
	kind, args, ok := splitKind(args, 3)
	switch {
	case !ok:
		return nil, fmt.Errorf("rcode rule supports only exact, prefix, suffix, substring, and regex name matching, received: %s", kind)
	case len(args) > 3:
		return nil, fmt.Errorf("many few arguments for a rcode rule") // sic: as others write it
	case len(args) < 3:
		return nil, fmt.Errorf("too few (%d) arguments for a rcode rule", len(args))
	}
	from, ok := parseRcode(args[1])
	if !ok {
		return nil, fmt.Errorf("invalid matching RCODE '%s' for a rcode rule", args[1])
	}
	to, ok := parseRcode(args[2])
	if !ok {
		return nil, fmt.Errorf("invalid replacement RCODE '%s' for a rcode rule", args[2])
	}
	match, err := newMatcher(kind, args[0])
	if err != nil {
		return nil, replyPatternError(err, "rcode", args[0])
	}
	match.warn(args[0])
	return &rcodeRule{mode(m), match, ResponseRules{&rcodeEdit{from: from, to: to}}}, nil
}

// parseRcode reads a number or a mnemonic.
func parseRcode(text string) (int, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return n, n >= 0 && n <= maxRcode
	}
	n, ok := dns.StringToRcode[strings.ToUpper(text)]
	return n, ok && n <= maxRcode
}
