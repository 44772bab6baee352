// Package trace tells other packages what the trace plugin has to offer, so that they need not import it. Start at
// Trace.
package trace

import (
	"github.com/coredns/coredns/plugin"

	ot "github.com/opentracing/opentracing-go"
)

// Trace is a plugin that traces queries.
type Trace interface {
	plugin.Handler
	// Tracer returns the tracer that spans are to be started with.
	Tracer() ot.Tracer
}
