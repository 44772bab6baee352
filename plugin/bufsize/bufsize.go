// Package bufsize bounds the UDP size that clients advertise, so that replies are not so long that they are sent in
// fragments (RFC 9715).
//
// In both lanes the query is changed for all who see it from here on: the reply is cut to the lower size, its OPT record
// tells it, and so does the query that goes upstream. Start at Bufsize.ServeDNS.
package bufsize

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "bufsize"

// Bufsize lowers the UDP size of queries that advertise more than Size octets.
type Bufsize struct {
	Next plugin.Handler
	Size int
}

// Name is the plugin's name.
func (buf Bufsize) Name() string { return pluginName }

// lowers reports whether a query that advertises size gets a lower one.
func (buf Bufsize) lowers(size uint16) bool { return int(size) > buf.Size }

// ServeDNS lowers the size in r itself, by which the server cuts the reply, and passes the query on.
func (buf Bufsize) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if opt := r.IsEdns0(); opt != nil && buf.lowers(opt.UDPSize()) {
		opt.SetUDPSize(uint16(buf.Size))
	}
	return plugin.NextOrFailure(buf.Name(), buf.Next, ctx, w, r)
}

// ServeWire lowers the size in q and passes the query on. If it has been decided, q keeps the lower size, by which the
// reply is ended; else the packet's own is put back for the next run.
func (buf Bufsize) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if !buf.lowers(q.EDNS().Size) {
		return plugin.NextWire(buf.Name(), buf.Next, ctx, w, q)
	}
	mark := q.Mark()
	q.SetSize(uint16(buf.Size))
	out := plugin.NextWire(buf.Name(), buf.Next, ctx, w, q)
	if out != wire.Done {
		q.Restore(mark)
		return out
	}
	w.Cut(q) // a plugin further up may restore q on its own account
	return out
}

// WireSelf returns buf.
func (buf Bufsize) WireSelf() plugin.Handler { return buf }

// Prompt implements plugin.Prompt.
func (buf Bufsize) Prompt() bool { return true }
