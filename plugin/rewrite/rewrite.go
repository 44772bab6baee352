// Package rewrite changes queries on their way down the chain, and replies on their way up.
//
//	query ──Rules in their order──▶ another name, type, class or EDNS option ──▶ plugins below
//	                 │ gathers                                                      │
//	client ◀── ResponseRules: names, values, TTLs, return code; the client's own question ◀──┘
//
// The client's message is never changed: plugins below get a copy, and those above see what was asked.
//
//	matcher.go              which names a rule is for, and what becomes of them
//	name.go answer.go       names of the query and of the reply
//	typeclass.go option.go variable.go ttl.go rcode.go cname.go    the other rules
//	reverter.go rebuild.go  replies in the message and in the wire lane
//
// Rules never change; any number of goroutines may serve with them. Start at Rewrite.ServeDNS, and Rule for what a rule is.
package rewrite

import (
	"context"
	"fmt"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/edns"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "rewrite"

var log = clog.NewWithPlugin(pluginName)

// Rewrite is the plugin. Without a RevertPolicy all changes are taken back in replies.
type Rewrite struct {
	Next  plugin.Handler
	Rules []Rule
	RevertPolicy

	block *block // nil if the directive did not make the plugin
}

// block is what stands in the server block besides; it is known when it starts.
type block struct{ validates bool }

// validated reports whether AD in replies is what *validator* found out, and not what an upstream says.
func (rw Rewrite) validated() bool { return rw.block != nil && rw.block.validates }

// Name is the plugin's name.
func (rw Rewrite) Name() string { return pluginName }

// ServeDNS passes the query on as the rules make it.
func (rw Rewrite) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) == 0 {
		return plugin.NextOrFailure(rw.Name(), rw.Next, ctx, w, r)
	}
	below := *r
	below.Question = append([]dns.Question(nil), r.Question...)
	rev := NewResponseReverter(w, r, rw.policy())
	rev.validated = rw.validated()
	stopped := false
	for _, rule := range rw.Rules {
		rules, result := rule.Rewrite(ctx, request.Request{W: w, Req: &below})
		if result != RewriteDone {
			continue
		}
		if name := below.Question[0].Name; !legal(name) {
			return dns.RcodeServerFailure, invalidName(name)
		}
		rev.ResponseRules = append(rev.ResponseRules, rules...)
		if stopped = rule.Mode() == Stop; stopped {
			break
		}
	}
	if name := below.Question[0].Name; name != r.Question[0].Name {
		plugin.NoteLookedUp(ctx, name)
	}
	if !stopped && len(rev.ResponseRules) == 0 && below.Question[0] == r.Question[0] {
		return plugin.NextOrFailure(rw.Name(), rw.Next, ctx, w, &below)
	}
	rcode, err := plugin.NextOrFailure(rw.Name(), rw.Next, ctx, rev, &below)
	if plugin.ClientWrite(rcode) {
		return rcode, err
	}
	// Nobody has written: an error reply goes by the same rules.
	if werr := rev.WriteMsg(edns.ErrorReply(r, rcode, err)); err == nil {
		err = werr
	}
	return dns.RcodeSuccess, err
}

// policy is what of a reply is taken back.
func (rw Rewrite) policy() RevertPolicy {
	if rw.RevertPolicy == nil {
		return NewRevertPolicy(false, false)
	}
	return rw.RevertPolicy
}

// ReadsMetadata reports whether a rule reads labels.
func (rw Rewrite) ReadsMetadata() bool {
	for _, rule := range rw.Rules {
		if o, ok := rule.(*optionRule); ok && o.label != "" {
			return true
		}
	}
	return false
}

// legal reports whether a name can stand in a query.
func legal(name string) bool {
	var b [wire.MaxName + 1]byte
	_, err := wire.AppendName(b[:0], name)
	return err == nil
}

func invalidName(name string) error { return fmt.Errorf("invalid name after rewrite: %s", name) }
