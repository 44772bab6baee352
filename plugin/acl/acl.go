// Package acl allows, refuses, blanks or drops queries, by who asks for what: source network, type and name.
//
//	name, type, client ──▶ Rules in their order ──▶ the first policy that fits ──▶ allow ──▶ next plugin
//	                                                                          └──▶ block, filter, drop: answered here
//
// The name is that which will be looked up: a plugin further up may have rewritten it, or be trying the names of a search
// list one by one; inner questions of plugins come by with the client's address, too. A rule may want to know the
// name as it was asked as well. Whatever the cache holds is given only to those who are allowed to have it, as acl
// stands above it.
//
// What is decided, and with which reply, is the same code for both lanes: decide in rule.go. Start at ACL.ServeDNS.
package acl

import (
	"context"

	"github.com/coredns/coredns/plugin"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "acl"

var log = clog.NewWithPlugin(pluginName)

// ACL decides by Rules which queries are passed on.
type ACL struct {
	Next  plugin.Handler
	Rules []rule

	counts *counts // nil if the directive did not make it
}

// Name is the plugin's name.
func (a ACL) Name() string { return pluginName }

// ServeDNS passes the query on if it is allowed.
func (a ACL) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil { // nothing that a rule can be about
		return dns.RcodeServerFailure, plugin.Error(pluginName, err)
	}
	defer adapter.Free()
	v := decide(a.Rules, &adapter.Query, askedBy(w))
	if v.action == none {
		a.counts.of(ctx).allow()
		return plugin.NextOrFailure(a.Name(), a.Next, ctx, w, r)
	}
	a.counts.of(ctx).deny(v)
	if v.badSource {
		log.Errorf("Blocking request. Unable to parse source address: %v", w.RemoteAddr())
	}
	v.reply(&adapter.Reply, &adapter.Query)
	if adapter.Reply.Dropped() {
		return dns.RcodeSuccess, nil
	}
	m, err := adapter.Reply.Msg(r)
	if err != nil {
		return dns.RcodeServerFailure, plugin.Error(pluginName, err)
	}
	if opt := r.IsEdns0(); opt != nil {
		m.SetEdns0(opt.UDPSize(), opt.Do())
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: v.reason()}}
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// ServeWire passes the query on if it is allowed.
func (a ACL) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	v := decide(a.Rules, q, askedIn(q))
	if v.action == none {
		out := plugin.NextWire(a.Name(), a.Next, ctx, w, q)
		if out == wire.Done {
			a.counts.of(ctx).allow()
		}
		return out
	}
	a.counts.of(ctx).deny(v)
	if v.badSource {
		log.Errorf("Blocking request. Unable to parse source address: %v", q.Client)
	}
	v.reply(w, q)
	return wire.Done
}

// WireSelf returns a.
func (a ACL) WireSelf() plugin.Handler { return a }

// Prompt implements plugin.Prompt.
func (a ACL) Prompt() bool { return true }

// askedBy is where the name that the client asked for is found in the message lane.
func askedBy(w dns.ResponseWriter) asked {
	return asked{by: w}
}

// askedIn is the same in the wire lane: a packet that does not tell what is looked up tells what was asked.
func askedIn(q *wire.Query) asked {
	if p := q.Packet(); q.Changed() && len(p) > wire.HeaderLen {
		return asked{packet: p}
	}
	return asked{}
}

// asked is the name that the client asked for, if it may be another than is looked up. It is only read where a rule
// wants it.
type asked struct {
	by     dns.ResponseWriter
	packet []byte
}

// appendLower appends the name to b in lower case. It reports false if it is the one that is looked up, or not known.
func (a asked) appendLower(b []byte) ([]byte, bool) {
	switch {
	case a.packet != nil:
		name := a.packet[wire.HeaderLen:]
		b = append(b, name[:wire.NameLen(name)]...)
	case a.by != nil:
		var err error
		name := plugin.AskedName(a.by)
		if name == "" {
			return b, false
		}
		if b, err = wire.AppendName(b, name); err != nil {
			return b, false
		}
	default:
		return b, false
	}
	wire.Lower(b, b)
	return b, true
}
