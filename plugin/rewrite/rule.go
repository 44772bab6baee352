package rewrite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"
)

// Rule is one rewrite rule.
type Rule interface {
	// Rewrite changes state.Req if the rule is for it, and reports whether it did. The message belongs to the rules;
	// its records and OPT record do not, and are replaced rather than changed. What is to be done with the reply is
	// returned, in the order in which it came to be: it is undone from the end.
	Rewrite(ctx context.Context, state request.Request) (ResponseRules, Result)
	// Mode tells what happens after the rule did something: Stop or Continue.
	Mode() string
}

// Result is what came of a rule.
type Result int

// The results.
const (
	RewriteIgnored Result = iota // the rule is not for this query
	RewriteDone                  // it did what it is for
)

// The words of rules.
const (
	Stop     = "stop"     // no more rules
	Continue = "continue" // the next rule

	ExactMatch     = "exact"     // the whole name
	PrefixMatch    = "prefix"    // how it begins
	SuffixMatch    = "suffix"    // how it ends
	SubstringMatch = "substring" // each part of it
	RegexMatch     = "regex"     // a regular expression

	AnswerMatch = "answer" // what follows is about replies
	AutoMatch   = "auto"   // take back what was done to the query
	NameMatch   = "name"   // owners
	ValueMatch  = "value"  // names in RDATA

	Replace = "replace" // an option that is there
	Set     = "set"     // replace or add
	Append  = "append"  // add if it is not there
	Unset   = "unset"   // remove
)

// wireRule is a Rule of ours, which can also do its work in the wire lane.
type wireRule interface {
	Rule
	// rewriteWire changes q, or p.q's EDNS facts, and gathers in p what is to be done with the reply.
	rewriteWire(p *rewriting, q *wire.Query) verdict
}

// verdict is what came of a rule in the wire lane.
type verdict uint8

const (
	ignored verdict = iota
	done
	unpack  // it takes the message to do this
	illegal // the name has become one that cannot be; it is p.next
)

// fields is what rules may be about.
var fields = []string{"name", "type", "class", "edns0", "ttl", "rcode", "cname"}

// usages is how the rules about each of fields are written.
var usages = map[string]string{
	"name":  "rewrite [continue|stop] name [exact|prefix|suffix|substring|regex] FROM TO [answer auto | answer name FROM TO | answer value FROM TO]",
	"type":  "rewrite [continue|stop] type FROM TO",
	"class": "rewrite [continue|stop] class FROM TO",
	"edns0": "rewrite [continue|stop] edns0 local|nsid|subnet set|replace|append|unset [CODE DATA | BITS4 BITS6] [revert]",
	"ttl":   "rewrite [continue|stop] ttl [exact|prefix|suffix|substring|regex] NAME SECONDS|MIN-MAX",
	"rcode": "rewrite [continue|stop] rcode [exact|prefix|suffix|substring|regex] NAME FROM TO",
	"cname": "rewrite [continue|stop] cname [exact|prefix|suffix|substring|regex] FROM TO",
}

// usage is how the rule that args begin is written.
func usage(args []string) string {
	for _, word := range args {
		if u, ok := usages[strings.ToLower(word)]; ok {
			return u
		}
	}
	return "rewrite [continue|stop] FIELD ARGS..., with one of the fields " + strings.Join(fields, ", ")
}

// newRule reads a rule as it stands in the Corefile.
func newRule(args []string) (Rule, error) {
	if len(args) == 0 {
		return nil, errors.New("no rule type specified for rewrite")
	}
	mode := Stop
	if word := strings.ToLower(args[0]); word == Stop || word == Continue {
		mode, args = word, args[1:]
		if len(args) == 0 {
			return nil, fmt.Errorf("%s rule must begin with a rule type", mode)
		}
	}
	field, args := args[0], args[1:]
	switch strings.ToLower(field) {
	case AnswerMatch:
		return nil, errors.New("response rewrites must begin with a name rule")
	case "name":
		return newNameRule(mode, args)
	case "type":
		return newTypeRule(mode, args)
	case "class":
		return newClassRule(mode, args)
	case "edns0":
		return newOptionRule(mode, args)
	case "ttl":
		return newTTLRule(mode, args)
	case "rcode":
		return newRcodeRule(mode, args)
	case "cname":
		return newCNAMERule(mode, args)
	}
	return nil, fmt.Errorf("invalid rule type %q%s", field, corefile.Choice(strings.ToLower(field), fields))
}

// mode is the Mode of a rule.
type mode string

// Mode implements Rule.
func (m mode) Mode() string { return string(m) }
