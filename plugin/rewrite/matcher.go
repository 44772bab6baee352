package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// maxPattern is how long a regular expression may be, in octets.
const maxPattern = 10000

// matcher knows which names a rule is for, and what becomes of them. Names are as presented, fully qualified and in lower case; all
// kinds but the regular expression compare them as texts, without regard to labels.
type matcher struct {
	kind     string // ExactMatch and so on
	from, to string

	// For a regular expression.
	pattern *regexp.Regexp
	literal []byte // what each name has that it matches
	target  target
}

// Errors of patterns; the rules word them.
var errPatternLength = errors.New("regex pattern too long")

// kinds are the kinds that a matcher may be of.
var kinds = []string{ExactMatch, PrefixMatch, SuffixMatch, SubstringMatch, RegexMatch}

// newMatcher is a matcher for names that from describes. Unless it is a pattern, from is made fully qualified.
func newMatcher(kind, from string) (m matcher, err error) {
	m.kind = kind
	if kind != RegexMatch {
		m.from = normalize(from)
		return m, nil
	}
	if len(from) > maxPattern {
		return m, fmt.Errorf("%w: %d > %d", errPatternLength, len(from), maxPattern)
	}
	if m.pattern, err = regexp.Compile(from); err == nil {
		m.literal = []byte(required(from))
	}
	return m, err
}

// warn tells who wrote from without a final dot that it is looked for with one, which few names have there.
func (m *matcher) warn(from string) {
	if (m.kind == PrefixMatch || m.kind == SubstringMatch) && !strings.HasSuffix(from, ".") {
		log.Warningf("%s %q is looked for as %q: names are compared with a final dot", m.kind, from, m.from)
	}
}

// setTarget says what names become.
func (m *matcher) setTarget(to string) {
	m.to = to
	m.target = parseTarget(to)
}

// matches reports whether the rule is for a name.
func (m *matcher) matches(name []byte) bool {
	switch m.kind {
	case ExactMatch:
		return string(name) == m.from
	case PrefixMatch:
		return len(name) >= len(m.from) && string(name[:len(m.from)]) == m.from
	case SuffixMatch:
		return len(name) >= len(m.from) && string(name[len(name)-len(m.from):]) == m.from
	case SubstringMatch:
		return bytes.Contains(name, []byte(m.from))
	}
	return bytes.Contains(name, m.literal) && m.pattern.Match(name)
}

// replace appends to b what a name becomes. It reports false if the rule is not for it.
func (m *matcher) replace(b, name []byte) ([]byte, bool) { return m.replaceShown(b, name, name) }

// replaceShown is replace for a name that is shown in another case: what stays of it does as it is shown.
func (m *matcher) replaceShown(b, name, shown []byte) ([]byte, bool) {
	if m.kind == RegexMatch {
		if !bytes.Contains(name, m.literal) {
			return b, false
		}
		groups := m.pattern.FindSubmatchIndex(name)
		if groups == nil {
			return b, false
		}
		return m.target.append(b, shown, groups), true
	}
	if !m.matches(name) {
		return b, false
	}
	switch m.kind {
	case ExactMatch:
		return append(b, m.to...), true
	case PrefixMatch:
		return append(append(b, m.to...), shown[len(m.from):]...), true
	case SuffixMatch:
		return append(append(b, shown[:len(name)-len(m.from)]...), m.to...), true
	}
	for { // SubstringMatch
		i := bytes.Index(name, []byte(m.from))
		if i < 0 {
			return append(b, shown...), true
		}
		b = append(append(b, shown[:i]...), m.to...)
		name, shown = name[i+len(m.from):], shown[i+len(m.from):]
	}
}

// target is a text with places for the groups of a pattern, written {1}; {0} is all that it matched.
type target []part

// part is a text, and then a group, or -1.
type part struct {
	text  string
	group int
}

func parseTarget(text string) (t target) {
	from := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '{' {
			continue
		}
		n, end := 0, i+1
		for end < len(text) && text[end] >= '0' && text[end] <= '9' && n < 1000 {
			n = n*10 + int(text[end]-'0')
			end++
		}
		if end == i+1 || end == len(text) || text[end] != '}' {
			continue
		}
		t = append(t, part{text[from:i], n})
		i, from = end, end+1
	}
	return append(t, part{text[from:], -1})
}

// groups is the greatest number of a group.
func (t target) groups() (n int) {
	for _, p := range t {
		n = max(n, p.group)
	}
	return n
}

// append appends the text to b, with the groups' places in name as regexp gives them.
func (t target) append(b, name []byte, groups []int) []byte {
	for _, p := range t {
		b = append(b, p.text...)
		if i := 2 * p.group; p.group >= 0 && i+1 < len(groups) && groups[i] >= 0 {
			b = append(b, name[groups[i]:groups[i+1]]...)
		}
	}
	return b
}

// required is the longest text that a pattern's matches are sure to have, "" if there is none: it is looked for first,
// which is several times faster than to try the pattern.
func required(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	return literalOf(re)
}

func literalOf(re *syntax.Regexp) (longest string) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literalOf(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if s := literalOf(sub); len(s) > len(longest) {
				longest = s
			}
		}
	}
	return longest
}

// normalize is a name of the Corefile, or a part of one, as a name's text is compared.
func normalize(name string) string { return plugin.Name(presented(name)).Normalize() }

// presented is text with each octet as it stands in the texts of names: a\046b as a\.b, and ä as \195\164.
func presented(text string) string {
	var b []byte
	for len(text) > 0 {
		c, n := text[0], 1
		if c == '\\' {
			if c, n = escaped(text); n == 0 {
				return string(b) + text // it is no name
			}
		}
		if n == 1 && c == '.' {
			b = append(b, c)
		} else {
			one := wire.Text([]byte{1, c, 0})
			b = append(b, one[:len(one)-1]...)
		}
		text = text[n:]
	}
	return string(b)
}

// escaped is the octet that an escape at the begin of a text stands for (RFC 1035 §5.1), and how long it is, 0 if it is
// none.
func escaped(text string) (c byte, n int) {
	if len(text) < 2 {
		return 0, 0
	}
	if text[1] < '0' || text[1] > '9' {
		return text[1], 2
	}
	if len(text) < 4 {
		return 0, 0
	}
	v, err := strconv.ParseUint(text[1:4], 10, 8)
	if err != nil {
		return 0, 0
	}
	return byte(v), 4
}

// splitKind takes the kind of match off the arguments of a rule, of which it has n without one. It reports false if it is
// none.
func splitKind(args []string, n int) (kind string, rest []string, ok bool) {
	if len(args) == n {
		return ExactMatch, args, true
	}
	kind = strings.ToLower(args[0])
	for _, k := range kinds {
		if k == kind {
			return kind, args[1:], true
		}
	}
	return args[0], args, false
}
