// Package plugin is what every plugin stands on: the Handler interface and its
// twin for the wire lane, registration, the step to the next plugin, zones and
// names of a server block, and the functions that answer from a ServiceBackend.
//
//	Server ──▶ Handler A ──NextOrFailure──▶ Handler B ──▶ ...   message lane: *dns.Msg
//	Server ──▶ WireHandler A ──NextWire──▶ WireHandler B ──▶ ...   wire lane: bytes
//
// A plugin registers its setup function from init, and setup adds a Plugin to the
// server block's chain. Handlers are called by many goroutines at once. Start at Handler; then WireHandler, in
// wire.go.
package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"

	"github.com/miekg/dns"
	ot "github.com/opentracing/opentracing-go"
)

// Namespace is the first word of all metric names.
const Namespace = "coredns"

// ErrOnce is the error of a directive that stands twice in a server block and may not.
var ErrOnce = errOnce

type (
	// Plugin makes a Handler that passes queries on to next. It is called once for
	// each zone and socket of a server block, from the chain's end to its begin.
	Plugin func(next Handler) Handler

	// Handler answers a query or passes it on.
	//
	// ServeDNS returns a rcode and an error. SERVFAIL, REFUSED, FORMERR and NOTIMP say
	// that nothing was written and that the server shall write an error reply with
	// this rcode; any other rcode says that a reply was written, or that on purpose none was.
	// The error is for the errors plugin; it goes up the chain beside the rcode.
	//
	// Name is the plugin's name as in the Corefile.
	Handler interface {
		ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error)
		Name() string
	}

	// HandlerFunc is a function as a Handler.
	HandlerFunc func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error)
)

// ServeDNS calls f.
func (f HandlerFunc) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return f(ctx, w, r)
}

// Name is the same for all functions.
func (f HandlerFunc) Name() string { return "handlerfunc" }

// Register makes the directive name known, with the function that sets it up. It is
// called from a plugin's init, and panics if the name is taken.
func Register(name string, action caddy.SetupFunc) {
	corefile.NoteOrigin(name)
	caddy.RegisterPlugin(name, caddy.Plugin{ServerType: "dns", Action: corefile.Placed(name, action)})
}

// Error is err with "plugin/name: " before it; errors.Is and errors.As see through it.
func Error(name string, err error) error { return fmt.Errorf("plugin/%s: %w", name, err) }

var errNoNext = errors.New("no next plugin found")

// NextOrFailure passes the query on to next. Without one it returns SERVFAIL and
// an error that names the plugin name. With an OpenTracing span in ctx, next gets a child span
// of its name. The plugin that writes the reply is noted for the plugin label of metrics.
func NextOrFailure(name string, next Handler, ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) { //nolint:revive // the signature is older than the rule
	if next == nil {
		return dns.RcodeServerFailure, Error(name, errNoNext)
	}
	if span := ot.SpanFromContext(ctx); span != nil {
		child := span.Tracer().StartSpan(next.Name(), ot.ChildOf(span.Context()))
		defer child.Finish()
		ctx = ot.ContextWithSpan(ctx, child)
	}
	if p := PathFrom(ctx); p != nil {
		before := p.Enter(next.Name())
		var rcode int
		var err error
		if p.Trail == nil {
			rcode, err = next.ServeDNS(ctx, w, r)
		} else {
			rcode, err = p.Trail.Serve(ctx, next, w, r)
		}
		p.Leave(before)
		return rcode, err
	}
	if t, ok := w.(PluginTracker); ok {
		w = &trackedWriter{Wrapped: Wrapped{w}, tracker: t, name: next.Name()}
	}
	return next.ServeDNS(ctx, w, r)
}

// ClientWrite reports whether a ServeDNS that returned rcode wrote to the client, or
// kept silent on purpose; if not, someone above must write.
func ClientWrite(rcode int) bool {
	switch rcode {
	case dns.RcodeServerFailure, dns.RcodeRefused, dns.RcodeFormatError, dns.RcodeNotImplemented:
		return false
	}
	return true
}

// Done reports whether ctx has ended, without waiting.
func Done(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}
