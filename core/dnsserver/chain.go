package dnsserver

import (
	"context"
	"reflect"

	"github.com/coredns/coredns/plugin"
)

// block is a Config as one Server serves it: with its chain.
type block struct {
	*Config
	head      plugin.Handler // first handler of the chain, nil if there is none
	collector MetadataCollector
	wire      plugin.WireHandler // head, if it serves the wire lane
	ctx       *blockContext      // for the wire lane
}

// newBlock makes the chain of cfg for s, from its end to its begin, and enters the handlers into cfg's registry.
func newBlock(s *Server, cfg *Config) *block {
	b := &block{Config: cfg}
	b.ctx = &blockContext{context.Background(), s, b}
	cfg.handlers = make(map[string]plugin.Handler, len(cfg.Plugin))
	cfg.chain = make([]plugin.Handler, len(cfg.Plugin))
	var next plugin.Handler
	for i := len(cfg.Plugin) - 1; i >= 0; i-- {
		h := cfg.Plugin[i](next)
		cfg.handlers[h.Name()] = h
		cfg.chain[i] = h
		if c, ok := h.(MetadataCollector); ok {
			b.collector = c
		}
		next = messageOnly(h)
		if _, ok := next.(plugin.WireHandler); !ok {
			if rest := promptRest(cfg.chain[i:]); rest != nil {
				next = &promptHandler{h, b, rest}
			}
		}
		b.head = h
	}
	if h, ok := next.(plugin.WireHandler); ok {
		b.wire = h
	}
	return b
}

// messageOnly is h, but if h has its ServeWire from a handler that it embeds, h without it:
// the embedded ServeWire knows nothing of what h does in ServeDNS.
func messageOnly(h plugin.Handler) plugin.Handler {
	w, ok := h.(plugin.WireHandler)
	if !ok || reflect.TypeOf(w.WireSelf()) == reflect.TypeOf(h) {
		return h
	}
	return plainHandler{h}
}

// plainHandler is a handler of which only the methods of Handler are seen.
type plainHandler struct{ plugin.Handler }
