// Package errors logs the errors that plugins return, one by one or many of a kind in one line.
//
//	chain ──rcode, err──▶ fault ──▶ the first pattern that fits counts it ──after a while──▶ one line
//	                        └──────▶ none fits ──▶ a line of its own
//
// Start at handler.ServeDNS; consolidate.go has the patterns.
package errors

import (
	"context"
	"errors"
	"fmt"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "errors"

var logger = log.NewWithPlugin(pluginName)

// handler logs what the plugins below it return as errors.
type handler struct {
	Next     plugin.Handler
	patterns []*pattern
	last     *pattern // behind those of the block; nil for none
	details  bool     // of errors that tell some
}

// TellsDetails implements plugin.DetailsTeller.
func (h *handler) TellsDetails() bool { return h.details }

// Name is the plugin's name.
func (h *handler) Name() string { return pluginName }

// ServeDNS passes the query on and logs the error that comes back, if any. It returns what came back.
func (h *handler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	var asked dns.Question // as it is now, for plugins below may change it
	if len(r.Question) > 0 {
		asked = r.Question[0]
	}
	rcode, err := plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
	if err != nil {
		h.report(&fault{rcode: rcode, name: asked.Name, qtype: asked.Qtype, err: err})
	}
	return rcode, err
}

// ServeWire passes the query on and logs the error of what was decided, if any.
func (h *handler) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	out := plugin.NextWire(h.Name(), h.Next, ctx, w, q)
	if out == wire.Done && w.Err() != nil {
		rcode, ok := w.ErrRcode()
		switch {
		case ok:
		case w.Failed() || w.Holds() && plugin.ClientWrite(w.Rcode()):
			rcode = w.Rcode()
		default:
			rcode = dns.RcodeSuccess
		}
		h.report(&fault{rcode: rcode, name: wire.Text(q.Lower()), qtype: q.Type(), err: w.Err()})
	}
	return out
}

// WireSelf returns h.
func (h *handler) WireSelf() plugin.Handler { return h }

// Prompt implements plugin.Prompt.
func (h *handler) Prompt() bool { return true }

// fault is one query that failed.
type fault struct {
	rcode int
	name  string // as presented; the log shows it in lower case
	qtype uint16
	err   error
}

// String is the fault as the log shows it.
func (f *fault) String() string {
	name := f.name
	if name == "" {
		name = "."
	}
	return fmt.Sprintf("%d %s %s: %s%s", f.rcode, dns.CanonicalName(name), dns.Type(f.qtype), log.OneLine(f.err), f.attempt())
}

// attempt is what the error tells of attempts to reach an upstream, in parentheses; "" if it tells nothing.
func (f *fault) attempt() string {
	var a plugin.Attempted
	if !errors.As(f.err, &a) {
		return ""
	}
	upstream, transport, n := a.Attempt()
	if upstream == "" {
		return " (no upstream was asked)"
	}
	return fmt.Sprintf(" (upstream %s over %s, attempt %d)", upstream, transport, n)
}

// report logs f, or lets the first pattern that fits its error count it.
func (h *handler) report(f *fault) {
	text := log.OneLine(f.err)
	for _, p := range append(h.patterns[:len(h.patterns):len(h.patterns)], h.last) {
		if p == nil || !p.expr.MatchString(text) {
			continue
		}
		first, ok := p.count()
		if !ok {
			break // shutting down: nobody would show what is counted
		}
		if first && p.showFirst {
			p.log("%s", f)
		}
		return
	}
	logger.Errorf("%s", f)
}

// stop logs what the patterns have counted.
func (h *handler) stop() error {
	for _, p := range h.patterns {
		p.stop()
	}
	if h.last != nil {
		h.last.stop()
	}
	return nil
}
