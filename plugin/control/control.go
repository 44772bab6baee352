// Package control lets operators look into the server while it runs, and steer it: by a unix socket that speaks HTTP
// and JSON, which coredns ctl and curl use.
//
//	every block: query ──▶ observer ──▶ chain ──▶ observer: top (most frequent), tail (who watches)
//
//	socket ──HTTP──▶ api ──┬──▶ plugins, by the interfaces of package status: cache, zones, upstreams
//	                       ├──▶ dnsserver: explain, listeners, certificates
//	                       └──▶ process: log level, reload, drain
//
// One directive in any block is for the whole configuration. The observer's counts belong to the socket's address, and
// live on in a reload. A loop notes its queries and enters them by the dozen, so that the hot path has no lock. Start at
// observer.ServeWire and api.
package control

import (
	"context"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "control"

// observer counts and shows the queries of a block.
type observer struct {
	Next  plugin.Handler
	state *state
}

// Name implements plugin.Handler.
func (o observer) Name() string { return pluginName }

// WireSelf implements plugin.WireHandler.
func (o observer) WireSelf() plugin.Handler { return o }

// Prompt implements plugin.Prompt.
func (o observer) Prompt() bool { return true }

// ServeWire passes the query on and notes it when it has been served.
func (o observer) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	out := plugin.NextWire(pluginName, o.Next, ctx, w, q)
	if out != wire.Done {
		return out
	}
	if o.state.counts {
		code := w.Rcode()
		if w.Dropped() {
			code = noReply
		}
		if l := q.Loop(); l != nil {
			o.state.tops.note(l, q.Lower(), q.Hash(), q.Client.Addr(), q.Type(), code)
		} else {
			o.state.tops.noteElsewhere(q.Lower(), q.Client.Addr(), q.Type(), code)
		}
	}
	if o.state.tails.any() {
		size := 0
		if w.Holds() {
			w.Cut(q)
			size = w.PlainLen()
		}
		o.state.tails.show(&seen{
			name: q.Lower(), qtype: q.Type(), client: q.Client, proto: q.Proto.String(), server: plugin.Label(ctx), view: plugin.View(ctx),
			rcode: w.Rcode(), size: size, dropped: w.Dropped(), took: time.Since(q.Arrival), err: w.Err(),
		})
	}
	return out
}

// ServeDNS passes the query on and notes it when it has been served.
func (o observer) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	rec := dnstest.Recorder{ResponseWriter: w, Start: time.Now()}
	rcode, err := plugin.NextOrFailure(pluginName, o.Next, ctx, &rec, r)
	if plugin.Inner(ctx) || len(r.Question) == 0 {
		return rcode, err
	}
	final, written := rec.Rcode, rec.Msg != nil || rec.Len > 0
	if !plugin.ClientWrite(rcode) { // the server will write this
		final, written = rcode, true
	}
	name, nameErr := wire.LowerName(r.Question[0].Name)
	if nameErr != nil {
		return rcode, err
	}
	client := wire.PeerOf(w.RemoteAddr(), w.LocalAddr()).Client
	if o.state.counts {
		code := final
		if !written {
			code = noReply
		}
		o.state.tops.noteElsewhere(name, client.Addr(), state.QType(), code)
	}
	if o.state.tails.any() {
		o.state.tails.show(&seen{
			name: name, qtype: state.QType(), client: client, proto: state.Proto(), server: plugin.Label(ctx), view: plugin.View(ctx),
			rcode: final, size: rec.Len, dropped: !written, took: time.Since(rec.Start), err: err,
		})
	}
	return rcode, err
}

// seen is a query that was served, as a tail shows it. name and err belong to the query.
type seen struct {
	name         []byte // lower, in wire form
	qtype        uint16
	client       netip.AddrPort
	proto        string
	server, view string
	rcode        int
	size         int // of the reply, in octets
	dropped      bool
	took         time.Duration
	err          error
}
