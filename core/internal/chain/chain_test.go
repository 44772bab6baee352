package chain

import (
	"context"
	"testing"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/plugin"

	"github.com/miekg/dns"
)

// handler is a plugin made of a function, in the message lane only.
type handler struct {
	name  string
	serve plugin.HandlerFunc
}

func (h handler) Name() string { return h.name }
func (h handler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return h.serve(ctx, w, r)
}

// silent answers nothing.
var silent = handler{"silent", func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return 0, nil }}

// blockOf is a block with these handlers, which know nothing of each other.
func blockOf(zone string, handlers ...plugin.Handler) Block {
	b := Block{Zone: zone, Filters: new([]FilterFunc), View: new(string)}
	for _, h := range handlers {
		b.Plugins = append(b.Plugins, func(plugin.Handler) plugin.Handler { return h })
	}
	return b
}

// build is the Chain of blocks.
func build(t testing.TB, o Options, blocks ...Block) *Chain {
	t.Helper()
	if o.Finish == nil {
		o.Finish = new(reply.Finisher)
	}
	c, err := Build(o, blocks)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// chainOf is a Chain of one block for all names, with these plugins.
func chainOf(t testing.TB, plugins ...plugin.Plugin) *Chain {
	t.Helper()
	b := blockOf(".")
	b.Plugins = plugins
	return build(t, Options{Self: t}, b)
}
