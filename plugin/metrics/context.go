package metrics

import (
	"context"

	"github.com/coredns/coredns/plugin"
)

// WithServer returns the address of the server that serves the query of ctx, as dns://:53, "" if there is none. Metrics have it as the
// label server.
func WithServer(ctx context.Context) string { return plugin.Label(ctx) }

// WithView returns the name of the view that the query of ctx was led to, "" if it was led to none. Metrics have it as the
// label view.
func WithView(ctx context.Context) string { return plugin.View(ctx) }
