// Package header sets and clears bits of the header: of queries before the plugins below get them, and of their replies.
//
//	query ──QueryRules──▶ plugins below ──reply──ResponseRules──▶ client
//
// Rules are made into one change of bits, which both lanes apply. Start at Header.ServeDNS.
package header

import (
	"context"
	"crypto/tls"

	"github.com/coredns/coredns/plugin"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "header"

var log = clog.NewWithPlugin(pluginName)

// Header changes bits of queries and replies.
type Header struct {
	QueryRules    []Rule
	ResponseRules []Rule
	Next          plugin.Handler
}

// Name is the plugin's name.
func (h Header) Name() string { return pluginName }

// ServeDNS changes the query itself, passes it on, and changes the reply.
func (h Header) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	changeOf(h.QueryRules).apply(&r.MsgHdr)
	if len(h.ResponseRules) > 0 {
		w = &ResponseHeaderWriter{ResponseWriter: w, Rules: h.ResponseRules}
	}
	return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
}

// ServeWire does the same as ServeDNS. In the wire lane the RD bit of a reply is the client's, so queries for which that would not
// be true are unpacked.
func (h Header) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	asked, replied := changeOf(h.QueryRules), changeOf(h.ResponseRules)
	if (asked.changes(q.Flags())|replied.changes(q.Flags()))&wire.FlagRD != 0 {
		return wire.Unpack
	}
	mark := q.Mark()
	if bits := asked.changes(q.Flags()); bits != 0 {
		for _, bit := range [...]uint16{wire.FlagAA, wire.FlagRA} {
			if bits&bit != 0 {
				q.SetFlag(bit, asked.set&bit != 0)
			}
		}
	}
	out := plugin.NextWire(h.Name(), h.Next, ctx, w, q)
	q.Restore(mark)
	if out == wire.Done && w.Holds() {
		for _, bit := range [...]uint16{wire.FlagAA, wire.FlagRA} {
			if (replied.set|replied.clear)&bit != 0 {
				w.SetFlag(bit, replied.set&bit != 0)
			}
		}
		if aa, ruled := replied.aa(); ruled {
			w.SetNonAuthoritative(!aa)
		}
	}
	return out
}

// WireSelf returns h.
func (h Header) WireSelf() plugin.Handler { return h }

// Prompt implements plugin.Prompt.
func (h Header) Prompt() bool { return true }

// Rule sets a bit, or clears it.
type Rule struct {
	Flag  string // aa, ra or rd
	State bool
}

// bit is the rule's bit in the header's second word, 0 if there is no such flag.
func (r *Rule) bit() uint16 {
	switch r.Flag {
	case authoritative:
		return wire.FlagAA
	case recursionAvailable:
		return wire.FlagRA
	case recursionDesired:
		return wire.FlagRD
	}
	return 0
}

// The flags of rules.
const (
	authoritative      = "aa"
	recursionAvailable = "ra"
	recursionDesired   = "rd"
)

// change is what rules come to: no bit stands in both.
type change struct{ set, clear uint16 }

// changeOf is what the rules do, one after the other.
func changeOf(rules []Rule) (c change) {
	for i := range rules {
		bit := rules[i].bit()
		c.set, c.clear = c.set&^bit, c.clear&^bit
		if rules[i].State {
			c.set |= bit
		} else {
			c.clear |= bit
		}
	}
	return c
}

// changes is the bits of flags that become others.
func (c change) changes(flags uint16) uint16 { return c.set&^flags | c.clear&flags }

// aa is what AA becomes, and whether there is a rule for it.
func (c change) aa() (on, ruled bool) {
	return c.set&wire.FlagAA != 0, (c.set|c.clear)&wire.FlagAA != 0
}

// apply changes a message's header.
func (c change) apply(h *dns.MsgHdr) {
	for _, b := range [...]struct {
		bit  uint16
		flag *bool
	}{{wire.FlagAA, &h.Authoritative}, {wire.FlagRA, &h.RecursionAvailable}, {wire.FlagRD, &h.RecursionDesired}} {
		if (c.set|c.clear)&b.bit != 0 {
			*b.flag = c.set&b.bit != 0
		}
	}
}

// ResponseHeaderWriter applies Rules to the messages that are written to it.
type ResponseHeaderWriter struct {
	dns.ResponseWriter
	Rules []Rule
}

// nonAuthoritativeSetter is the writer of a cache above: hits are given AA unless the reply is set to be non-authoritative.
type nonAuthoritativeSetter interface{ SetNonAuthoritative(on bool) }

// WriteMsg writes res with other bits. res is not changed. A cache above keeps to a rule for AA.
func (r *ResponseHeaderWriter) WriteMsg(res *dns.Msg) error {
	m := *res
	c := changeOf(r.Rules)
	c.apply(&m.MsgHdr)
	if aa, ruled := c.aa(); ruled {
		r.setNonAuthoritative(!aa)
	}
	return r.ResponseWriter.WriteMsg(&m)
}

// TakeReply implements plugin.ReplyTaker: it passes on what only the reply of an adapter tells, and wants the message.
func (r *ResponseHeaderWriter) TakeReply(reply *wire.Reply, _ *dns.Msg) (taken bool, err error) {
	r.setNonAuthoritative(reply.NonAuthoritative())
	return false, nil
}

func (r *ResponseHeaderWriter) setNonAuthoritative(on bool) {
	if s, ok := r.ResponseWriter.(nonAuthoritativeSetter); ok {
		s.SetNonAuthoritative(on)
	}
}

// Write writes bytes as they are.
func (r *ResponseHeaderWriter) Write(buf []byte) (int, error) {
	log.Warning("ResponseHeaderWriter called with Write: not ensuring headers")
	return r.ResponseWriter.Write(buf)
}

// ConnectionState implements dns.ConnectionStater.
func (r *ResponseHeaderWriter) ConnectionState() *tls.ConnectionState {
	return plugin.ConnectionState(r.ResponseWriter)
}

// AskedName implements plugin.Asker.
func (r *ResponseHeaderWriter) AskedName() string { return plugin.AskedName(r.ResponseWriter) }
