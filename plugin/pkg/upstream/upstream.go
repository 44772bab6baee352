// Package upstream asks questions of a plugin's own: it sends them through the whole server again, so that all plugins
// of the block that a name belongs to have their say, cache and forward among them.
//
//	plugin ──Lookup──▶ Server of the context ──▶ block of the name ──▶ chain ──▶ reply, captured
//
// Such a question is counted and logged as a query of its own. Start at Upstream.Lookup.
package upstream

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Upstream resolves names by way of the server. It holds nothing; any number of goroutines may use one.
type Upstream struct{}

var (
	errNoServer = errors.New("no full server is running")
	errTooMany  = errors.New("the query has led to too many lookups")
)

// New returns an Upstream.
func New() *Upstream { return &Upstream{} }

// MaxLoops is how often a question may come back to a plugin over aliases.
const MaxLoops = 8

// maxLookups is how many questions may come of one, of all together that are a way of aliases: where each leads to
// several others, MaxLoops alone would let them be thousands of millions.
const maxLookups = 100

// lookupsKey is the context key of how many questions have come of one, an *atomic.Int32.
type lookupsKey struct{}

// Again is ctx for a question that the query of ctx leads to, one that comes back once more. It reports false if
// the query itself has come back more than most times.
func Again(ctx context.Context, most int) (again context.Context, ok bool) {
	loops, _ := ctx.Value(plugin.LoopKey{}).(int)
	if ctx.Value(lookupsKey{}) == nil {
		ctx = context.WithValue(ctx, lookupsKey{}, new(atomic.Int32))
	}
	return context.WithValue(ctx, plugin.LoopKey{}, loops+1), loops <= most
}

// Lookup asks the server for name and typ, in class IN, on the calling goroutine. The question goes out as state's
// client would ask it: with its address, header bits and OPT record.
//
// The reply belongs to the caller. It is nil, without an error, if the chain wrote none. It is an error if ctx is
// not that of a query of a server, or one of Again from which too many have come.
func (u *Upstream) Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error) {
	server := plugin.ServerFrom(ctx)
	if server == nil {
		return nil, errNoServer
	}
	if n, ok := ctx.Value(lookupsKey{}).(*atomic.Int32); ok && n.Add(1) > maxLookups {
		return nil, errTooMany
	}
	inner := state.NewWithQuestion(name, typ)
	w := nonwriter.New(state.W)
	server.ServeDNS(ctx, w, inner.Req)
	return w.Msg, nil
}
