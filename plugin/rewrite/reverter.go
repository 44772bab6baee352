package rewrite

import (
	"cmp"
	"crypto/tls"
	"strings"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin"
)

// ResponseRule is what one rule does with a reply.
type ResponseRule interface {
	// RewriteResponse changes rr, a record of res, or res itself. Both belong to the rules.
	RewriteResponse(res *dns.Msg, rr dns.RR)
}

// ResponseRules are what several rules do, in the order in which the rules changed the query. They are applied from the end.
type ResponseRules = []ResponseRule

// RevertPolicy says what is taken back in replies.
type RevertPolicy interface {
	DoRevert() bool          // what ResponseRules are about
	DoQuestionRestore() bool // the question
}

type revertPolicy struct{ noRevert, noRestore bool }

func (p revertPolicy) DoRevert() bool          { return !p.noRevert }
func (p revertPolicy) DoQuestionRestore() bool { return !p.noRestore }

// NewRevertPolicy is a policy by what is not to be taken back.
func NewRevertPolicy(noRevert, noRestore bool) RevertPolicy { return revertPolicy{noRevert, noRestore} }

// NoRevertPolicy leaves what ResponseRules are about.
func NoRevertPolicy() RevertPolicy { return NewRevertPolicy(true, false) }

// NoRestorePolicy leaves the question.
func NoRestorePolicy() RevertPolicy { return NewRevertPolicy(false, true) }

// ResponseReverter is the writer that the plugins below get: it makes of their reply one to what the client asked.
type ResponseReverter struct {
	dns.ResponseWriter
	ResponseRules ResponseRules

	asked     dns.Question
	policy    RevertPolicy
	validated bool // AD is what a validator found out, for the names that it saw
}

// NewResponseReverter is a ResponseReverter for the query r, as the client sent it.
func NewResponseReverter(w dns.ResponseWriter, r *dns.Msg, policy RevertPolicy) *ResponseReverter {
	return &ResponseReverter{ResponseWriter: w, asked: r.Question[0], policy: policy}
}

// AskedName is the name that the client asked for, for plugins below that want to know it.
func (r *ResponseReverter) AskedName() string {
	return cmp.Or(plugin.AskedName(r.ResponseWriter), r.asked.Name)
}

// WriteMsg writes res as a reply to the client's question. res is not changed.
func (r *ResponseReverter) WriteMsg(res *dns.Msg) error {
	res = res.Copy()
	if r.policy.DoQuestionRestore() {
		if r.validated && len(res.Question) > 0 && !strings.EqualFold(res.Question[0].Name, r.asked.Name) {
			res.AuthenticatedData = false // nobody has signed it for this name
		}
		r.restore(res)
	}
	if r.policy.DoRevert() {
		r.revert(res)
	}
	return r.ResponseWriter.WriteMsg(res)
}

// restore makes the question the client's.
func (r *ResponseReverter) restore(res *dns.Msg) {
	if len(res.Question) == 0 {
		res.Question = []dns.Question{r.asked}
		return
	}
	res.Question[0] = r.asked
}

// revert applies the rules to each record. Owners that come out as the name that was asked for are written as the client
// wrote it.
func (r *ResponseReverter) revert(res *dns.Msg) {
	sections := [...][]dns.RR{res.Ns, res.Answer, res.Extra}
	for _, rrs := range sections {
		for _, rr := range rrs {
			before := rr.Header().Name
			for i := len(r.ResponseRules) - 1; i >= 0; i-- {
				if rule := r.ResponseRules[i]; !aboutMessage(rule) {
					rule.RewriteResponse(res, rr)
				}
			}
			if h := rr.Header(); h.Name != before && strings.EqualFold(h.Name, r.asked.Name) {
				h.Name = r.asked.Name
			}
		}
	}
	rcode := res.Rcode
	for i := len(r.ResponseRules) - 1; i >= 0; i-- {
		if rule := r.ResponseRules[i]; aboutMessage(rule) {
			rule.RewriteResponse(res, nil)
		}
		if e, ok := r.ResponseRules[i].(*cnameEdit); ok && e.led && r.validated {
			res.AuthenticatedData = false
		}
	}
	if r.validated && res.Rcode != rcode {
		res.AuthenticatedData = false
	}
}

// aboutMessage reports whether a rule is about the message and not about its records: it is applied once.
func aboutMessage(rule ResponseRule) bool {
	_, ok := rule.(*rcodeEdit)
	return ok
}

// ConnectionState implements dns.ConnectionStater.
func (r *ResponseReverter) ConnectionState() *tls.ConnectionState {
	return plugin.ConnectionState(r.ResponseWriter)
}
