package rewrite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// setAnswers reads what a name rule does with the names of replies: answer auto, answer name FROM TO, answer value FROM TO. The word
// answer may be left out after the first time.
func (r *nameRule) setAnswers(args []string) error {
	auto, explicitAuto := r.kind == ExactMatch, false
	names := 0
	if len(args) > 0 && strings.ToLower(args[0]) != AnswerMatch {
		return fmt.Errorf("exceeded the number of arguments for a non-answer rule argument for %s rule", r.kind)
	}
	for len(args) > 0 {
		if strings.ToLower(args[0]) == AnswerMatch {
			args = args[1:]
		}
		if len(args) == 0 {
			return fmt.Errorf("type missing for answer rule for %s rule", r.kind)
		}
		word := strings.ToLower(args[0])
		switch word {
		case AutoMatch:
			auto, explicitAuto = true, true
			args = args[1:]
			continue
		case NameMatch, ValueMatch:
		default:
			return fmt.Errorf("invalid type %q for answer rule for %s rule", args[0], r.kind)
		}
		if len(args) < 3 {
			return fmt.Errorf("%s answer rule for %s rule: 2 arguments required", word, r.kind)
		}
		p, err := newPattern(args[1], args[2])
		if err != nil {
			return err
		}
		if word == NameMatch {
			names++
			r.fixed = append(r.fixed, &ownerRule{by: p})
		} else {
			r.fixed = append(r.fixed, &valueRule{by: p})
		}
		args = args[3:]
	}
	if explicitAuto && names > 0 {
		return errors.New("auto name answer rule cannot be combined with explicit name anwer rules") // sic: as others write it
	}
	if auto {
		r.takeBack()
	}
	return nil
}

// takeBack makes names of replies what they were before the rule. As rules of a reply are followed from the last one to the
// first, what else was said about names is done before.
func (r *nameRule) takeBack() {
	if r.kind != SuffixMatch {
		r.remaps = true
		return
	}
	back := &matcher{kind: SuffixMatch, from: r.to, to: r.from}
	r.fixed = append(ResponseRules{&ownerRule{by: back}, &valueRule{by: back}}, r.fixed...)
}

// newPattern is a matcher for names of replies.
func newPattern(from, to string) (*matcher, error) {
	m, err := newMatcher(RegexMatch, from)
	if err != nil {
		return nil, patternError(err, "invalid regex matching pattern: %s", from)
	}
	m.setTarget(normalize(to))
	if m.target.groups() > m.pattern.NumSubexp() {
		return nil, errors.New("the rewrite regex pattern (to) uses more subexpressions than its corresponding matching regex pattern (from)")
	}
	return &m, nil
}

// edit is a ResponseRule of ours: what it does with the parts of a reply, in either lane. Names come as presented, in lower
// case and as shown in the reply; what they become is appended to b. What a rule leaves of a name stays as shown (RFC 4343 §4.1).
type edit interface {
	ResponseRule
	owner(b, name, shown []byte) ([]byte, bool)
	value(b, name, shown []byte) ([]byte, bool)
	ttl(ttl uint32) uint32
	rcode(rcode int) int
}

// untouched is an edit that does nothing; others embed it.
type untouched struct{}

func (untouched) owner(b, _, _ []byte) ([]byte, bool) { return b, false }
func (untouched) value(b, _, _ []byte) ([]byte, bool) { return b, false }
func (untouched) ttl(ttl uint32) uint32               { return ttl }
func (untouched) rcode(rcode int) int                 { return rcode }

// editRecord does with a record of a message what e says. Names that would be none stay.
func editRecord(e edit, rr dns.RR) {
	h := rr.Header()
	if h.Rrtype == dns.TypeOPT {
		return
	}
	var room [256]byte
	if name, ok := e.owner(room[:0], lowered(h.Name), []byte(h.Name)); ok && legal(string(name)) {
		h.Name = string(name)
	}
	h.Ttl = e.ttl(h.Ttl)
	if t := targetOf(rr); t != nil {
		if name, ok := e.value(room[:0], lowered(*t), []byte(*t)); ok && legal(string(name)) {
			*t = string(name)
		}
	}
}

// lowered is a name with its ASCII letters in lower case: others have none in DNS, and are not to change their length.
func lowered(name string) []byte {
	b := []byte(name)
	wire.Lower(b, b)
	return b
}

// targetOf is where the name is that a record leads to, nil if its type has none.
func targetOf(rr dns.RR) *string {
	switch rr := rr.(type) {
	case *dns.CNAME:
		return &rr.Target
	case *dns.DNAME:
		return &rr.Target
	case *dns.SRV:
		return &rr.Target
	case *dns.MX:
		return &rr.Mx
	case *dns.NS:
		return &rr.Ns
	case *dns.NAPTR:
		return &rr.Replacement
	case *dns.SOA:
		return &rr.Ns
	case *dns.PTR:
		return &rr.Ptr
	}
	return nil
}

// remap makes of a name, and of those below it, another one.
type remap struct {
	untouched
	from []byte // lower case
	to   []byte // as it was asked
}

func (r *remap) owner(b, name, shown []byte) ([]byte, bool) { return r.apply(b, name, shown) }
func (r *remap) value(b, name, shown []byte) ([]byte, bool) { return r.apply(b, name, shown) }

func (r *remap) apply(b, name, shown []byte) ([]byte, bool) {
	cut := len(name) - len(r.from)
	if cut < 0 || string(name[cut:]) != string(r.from) || cut > 0 && !labelEnds(name[:cut]) {
		return b, false
	}
	if b = append(b, shown[:cut]...); cut > 0 && len(r.to) == 1 { // below the root
		return b, true
	}
	return append(b, r.to...), true
}

// labelEnds reports whether a label ends where text ends: with a dot that is not part of the label.
func labelEnds(text []byte) bool {
	n := len(text) - 1
	if text[n] != '.' {
		return false
	}
	escapes := 0
	for n--; n >= 0 && text[n] == '\\'; n-- {
		escapes++
	}
	return escapes%2 == 0
}

// RewriteResponse implements ResponseRule.
func (r *remap) RewriteResponse(_ *dns.Msg, rr dns.RR) { editRecord(r, rr) }

// ownerRule changes owners, valueRule names in RDATA.
type (
	ownerRule struct {
		untouched
		by *matcher
	}
	valueRule struct {
		untouched
		by *matcher
	}
)

func (r *ownerRule) owner(b, name, shown []byte) ([]byte, bool) {
	return r.by.replaceShown(b, name, shown)
}
func (r *valueRule) value(b, name, shown []byte) ([]byte, bool) {
	return r.by.replaceShown(b, name, shown)
}

// RewriteResponse implements ResponseRule.
func (r *ownerRule) RewriteResponse(_ *dns.Msg, rr dns.RR) { editRecord(r, rr) }

// RewriteResponse implements ResponseRule.
func (r *valueRule) RewriteResponse(_ *dns.Msg, rr dns.RR) { editRecord(r, rr) }
