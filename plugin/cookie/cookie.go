// Package cookie configures DNS cookies (RFC 7873, RFC 9018), counts what clients show, and can demand cookies of those that ask over UDP.
//
//	cookie { secret_file … } ──setup──▶ Config.Cookies ──▶ package reply: judges each COOKIE option, puts the cookie into each reply
//	                                                            │
//	query ──▶ Cookie ◀── what it found out (wire.CookieState) ──┘
//	             ├── as it should be, or nothing is demanded ──▶ plugins below
//	             ├── a client cookie only, or a bad server cookie ──▶ BADCOOKIE
//	             └── no cookie ──▶ TC, for the client to come over TCP
//
// Cookies are answered without the directive, too. How they are made is in package pkg/cookie. A Cookie may be used by any number of goroutines.
// Start at Cookie.refuse.
package cookie

import (
	"context"
	"sync"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "cookie"

// Cookie counts queries by their cookies, and refuses those without a good one if it is to.
type Cookie struct {
	Next plugin.Handler

	require bool
	once    sync.Once
	counts  *counts // of the server that the handler belongs to; made at the first query
}

// Name is the plugin's name.
func (c *Cookie) Name() string { return pluginName }

// WireSelf returns c.
func (c *Cookie) WireSelf() plugin.Handler { return c }

// Prompt implements plugin.Prompt.
func (c *Cookie) Prompt() bool { return true }

// refusal is what becomes of a query.
type refusal uint8

const (
	passed    refusal = iota
	badCookie         // it is answered BADCOOKIE, with a good cookie
	truncated         // it is answered with TC, for there is no place to put a cookie
)

// refuse decides about a query by what its cookie tells (RFC 7873 §5.2.3): one whose sender may be forged must have a good one.
func (c *Cookie) refuse(state wire.CookieState, forgeable bool) refusal {
	switch {
	case !c.require || !forgeable || state == wire.CookieValid:
		return passed
	case state == wire.CookieNone:
		return truncated
	}
	return badCookie
}

// ServeDNS refuses the query or passes it on.
func (c *Cookie) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode != dns.OpcodeQuery || plugin.Inner(ctx) {
		return plugin.NextOrFailure(pluginName, c.Next, ctx, w, r)
	}
	peer := wire.PeerOf(w.RemoteAddr(), nil)
	state := plugin.CookieOf(ctx, r, peer.Client.Addr())
	f := c.refuse(state, plugin.Forgeable(ctx, peer.Proto))
	c.count(ctx, state, f)
	m := new(dns.Msg)
	switch f {
	case badCookie:
		m.SetRcode(r, dns.RcodeBadCookie)
	case truncated:
		m.SetReply(r)
		m.Truncated = true
	default:
		return plugin.NextOrFailure(pluginName, c.Next, ctx, w, r)
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// ServeWire does the same as ServeDNS. A query is counted when it is decided, however often it runs.
func (c *Cookie) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	f := c.refuse(q.Cookie(), plugin.Forgeable(ctx, q.Proto))
	out := wire.Done
	switch f {
	case badCookie:
		w.Begin(q)
		w.SetWriter(pluginName)
		w.SetRcode(dns.RcodeBadCookie)
	case truncated:
		w.Begin(q)
		w.SetWriter(pluginName)
		w.SetFlag(wire.FlagTC, true)
	default:
		out = plugin.NextWire(pluginName, c.Next, ctx, w, q)
	}
	if out == wire.Done {
		c.count(ctx, q.Cookie(), f)
	}
	return out
}
