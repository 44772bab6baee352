package template

import (
	"context"
	"regexp"
	"strconv"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/cache"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/request"

	"github.com/expr-lang/expr/vm"
	"github.com/miekg/dns"
)

// template is one template directive.
type template struct {
	zones        []string
	class, qtype uint16           // dns.ClassANY, dns.TypeANY: all
	regex        []*regexp.Regexp // none: all
	vars         []variable
	conditions   []*vm.Program
	sections     [3][]record
	rcode        int
	ede          *dns.EDNS0_EDE
	fall         fall.F
	upstream     Upstreamer
	kept         *cache.Cache[*rendered] // what was rendered; nil if it depends on more than the question
	settled      bool                    // by the question: it answers in the wire lane, too
	counted      *counted
}

// The sections of a reply.
const (
	answer = iota
	authority
	additional
)

var sectionNames = [...]string{answer: "answer", authority: "authority", additional: "additional"}

// variable is a var line.
type variable struct {
	name    string
	program *vm.Program
}

// data is what templates are rendered with.
type data struct {
	Zone     string            // the directive's zone that the name is in
	Name     string            // the name asked for, lower case
	Class    string            // the query's class and type; if it is ANY, the directive's
	Type     string            //
	Match    []string          // the regex's match, and those of its groups
	Group    map[string]string // the same by name and number
	Message  *dns.Msg
	Question *dns.Question
	Remote   string // the client's address
	Var      map[string]any
	Regex    string // the regex that matched

	ctx context.Context
}

// Meta is a metadata label's value, "" if there is none.
func (d *data) Meta(name string) string {
	if f := metadata.ValueFunc(d.ctx, name); f != nil {
		return f()
	}
	return ""
}

// verdict is what a stanza says about a query.
type verdict uint8

const (
	passes verdict = iota // not for it: the next one
	answers
	refuses // for it, but its name is none of those that it has answers for
)

// concerns is the zone of t that such queries are in, "" if it is not for them.
func (t *template) concerns(name string, class, qtype uint16) (zone string) {
	if (t.class == dns.ClassANY || class == dns.ClassANY || class == t.class) &&
		(t.qtype == dns.TypeANY || qtype == dns.TypeANY || qtype == t.qtype) {
		zone = plugin.Zones(t.zones).Matches(name)
	}
	return zone
}

// match looks whether t answers the query.
func (t *template) match(ctx context.Context, state *request.Request) (*data, verdict, error) {
	zone := t.concerns(state.Name(), state.QClass(), state.QType())
	if zone == "" {
		return nil, passes, nil
	}
	d := &data{
		Zone:     zone,
		Name:     state.Name(),
		Class:    state.Class(),
		Type:     state.Type(),
		Message:  state.Req,
		Question: &state.Req.Question[0],
		Remote:   state.IP(),
		ctx:      ctx,
	}
	if state.QClass() == dns.ClassANY {
		d.Class = dns.ClassToString[t.class]
	}
	if state.QType() == dns.TypeANY {
		d.Type = dns.TypeToString[t.qtype]
	}
	ok := t.matchName(d)
	if ok {
		var err error
		if ok, err = t.holds(ctx, state, d); err != nil {
			return nil, refuses, err
		}
	}
	switch {
	case ok:
		return d, answers, nil
	case t.fall.Through(state.Name()):
		return nil, passes, nil
	}
	return nil, refuses, nil
}

// matchName fills in the match of the first regex that matches.
func (t *template) matchName(d *data) bool {
	for _, r := range t.regex {
		m := r.FindStringSubmatch(d.Name)
		if m == nil {
			continue
		}
		d.Regex, d.Match = r.String(), m
		d.Group = make(map[string]string, 2*len(m))
		for i, name := range r.SubexpNames() {
			d.Group[strconv.Itoa(i)] = m[i]
			if name != "" {
				d.Group[name] = m[i]
			}
		}
		return true
	}
	return false
}
