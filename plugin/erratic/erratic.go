// Package erratic is a server that misbehaves on purpose, for tests of clients: it drops, delays and truncates.
//
//	query ──number──▶ drop? delay? truncate? ──▶ reply
//
// What befalls a query depends on its number alone, which is counted from 0 when the server starts or reloads.
// Start at Erratic.ServeDNS.
package erratic

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "erratic"

// Erratic answers queries, but not always as it should.
type Erratic struct {
	Next plugin.Handler // for names outside of the zones

	count atomic.Uint64 // queries so far
	zones []string      // none is all names
	faults
}

// faults is which queries are hit: every so manyth, none for 0.
type faults struct {
	drop     uint64
	truncate uint64
	delay    uint64
	duration time.Duration // of a delay
	large    bool
}

// hits reports whether query number n is among every so manyth.
func hits(n, every uint64) bool { return every > 0 && n%every == 0 }

// Name is the plugin's name.
func (e *Erratic) Name() string { return pluginName }

// ServeDNS answers, drops or delays.
func (e *Erratic) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	if len(e.zones) > 0 && plugin.Zones(e.zones).Matches(state.Name()) == "" {
		return plugin.NextOrFailure(e.Name(), e.Next, ctx, w, r)
	}
	n := e.count.Add(1) - 1
	if hits(n, e.drop) {
		return dns.RcodeSuccess, nil
	}
	if hits(n, e.delay) {
		over := time.After(e.duration)
		select {
		case <-over:
		case <-ctx.Done():
			if ctx.Err() != context.DeadlineExceeded { // the client has left
				return dns.RcodeServerFailure, plugin.Error(pluginName, ctx.Err())
			}
			<-over // a reply that is late is what this is for
		}
	}
	m := e.reply(&state, hits(n, e.truncate))
	if m == nil {
		return dns.RcodeServerFailure, nil
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// ServeWire leaves queries to the message lane, for what is done to them is done in time.
func (e *Erratic) ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome {
	return wire.Unpack
}

// WireSelf returns e.
func (e *Erratic) WireSelf() plugin.Handler { return e }

// Ready reports whether three or four queries have been served, as a plugin does that becomes ready and ceases to be.
func (e *Erratic) Ready() bool {
	n := e.count.Load()
	return n == 3 || n == 4
}

// AutoPath is a search path, for tests of the autopath plugin.
func (e *Erratic) AutoPath(request.Request) []string {
	return []string{"a.example.org.", "b.example.org.", ""}
}
