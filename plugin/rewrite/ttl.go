package rewrite

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// ttlRule brings the TTLs of replies into bounds.
type ttlRule struct {
	mode
	matcher
	reply ResponseRules // one ttlEdit
}

// Rewrite implements Rule.
func (r *ttlRule) Rewrite(_ context.Context, state request.Request) (ResponseRules, Result) {
	if !r.matches([]byte(state.Name())) {
		return nil, RewriteIgnored
	}
	return r.reply, RewriteDone
}

// rewriteWire implements wireRule.
func (r *ttlRule) rewriteWire(p *rewriting, q *wire.Query) verdict {
	if !r.matches(p.text(q)) {
		return ignored
	}
	p.rules = append(p.rules, r.reply...)
	return done
}

// ttlEdit is what becomes of TTLs, in seconds.
type ttlEdit struct {
	untouched
	least, most uint32
}

func (e *ttlEdit) ttl(ttl uint32) uint32 { return min(max(ttl, e.least), e.most) }

// RewriteResponse implements ResponseRule.
func (e *ttlEdit) RewriteResponse(_ *dns.Msg, rr dns.RR) { editRecord(e, rr) }

// newTTLRule reads [KIND] NAME TTL.
func newTTLRule(m string, args []string) (Rule, error) {
	if len(args) < 2 {
		return nil, fmt.Errorf("too few (%d) arguments for a ttl rule", len(args))
	}
	kind, args, ok := splitKind(args, 2)
	switch {
	case !ok:
		return nil, fmt.Errorf("ttl rule supports only exact, prefix, suffix, substring, and regex name matching, received: %s", kind)
	case len(args) > 2:
		return nil, fmt.Errorf("many few arguments for a ttl rule") // sic: as others write it
	case len(args) < 2:
		return nil, fmt.Errorf("too few (%d) arguments for a ttl rule", len(args))
	}
	least, most, ok := parseTTL(args[1])
	if !ok {
		return nil, fmt.Errorf("invalid TTL '%s' for a ttl rule", args[1])
	}
	match, err := newMatcher(kind, args[0])
	if err != nil {
		return nil, replyPatternError(err, "ttl", args[0])
	}
	match.warn(args[0])
	return &ttlRule{mode(m), match, ResponseRules{&ttlEdit{least: least, most: most}}}, nil
}

// replyPatternError is the error of a pattern of a rule about replies.
func replyPatternError(err error, field, pattern string) error {
	if len(pattern) > maxPattern {
		return fmt.Errorf("regex pattern too long in a %s rule: %d > %d", field, len(pattern), maxPattern)
	}
	return fmt.Errorf("invalid regex pattern in a %s rule: %s: %w", field, pattern, err)
}

// parseTTL reads N, MIN-MAX, MIN- or -MAX.
func parseTTL(text string) (least, most uint32, ok bool) {
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	if low == "" && high == "" {
		return 0, 0, false
	}
	if least, ok = ttlOr(low, 0); !ok {
		return 0, 0, false
	}
	most, ok = ttlOr(high, math.MaxInt32)
	return least, most, ok && least <= most
}

// ttlOr is a TTL, or otherwise if there is no text.
func ttlOr(text string, otherwise uint32) (uint32, bool) {
	if text == "" {
		return otherwise, true
	}
	n, err := strconv.ParseUint(text, 10, 31)
	return uint32(n), err == nil
}
