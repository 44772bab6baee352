// Package cancel gives each query a deadline: plugins further down that wait for others (an upstream, a database) give up when
// it has passed. In the message lane it stands in the context, in the wire lane in the query. Start at
// Cancel.ServeDNS.
package cancel

import (
	"context"
	"fmt"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

const (
	pluginName     = "cancel"
	defaultTimeout = 5001 * time.Millisecond // a little more than clients wait
)

func init() { plugin.Register(pluginName, setup) }

// Cancel puts a deadline on queries.
type Cancel struct {
	Next    plugin.Handler
	timeout time.Duration // 0 is the default
}

// Name is the plugin's name.
func (c Cancel) Name() string { return pluginName }

// ServeDNS passes the query on with a context that ends at the deadline, or when the chain has returned.
func (c Cancel) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, c.after())
	defer cancel()
	return plugin.NextOrFailure(c.Name(), c.Next, ctx, w, r)
}

// ServeWire passes the query on with a deadline, counted from its arrival.
func (c Cancel) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	from := q.Arrival
	if from.IsZero() {
		from = time.Now()
	}
	before := q.Deadline()
	if end := from.Add(c.after()); before.IsZero() || end.Before(before) {
		q.SetDeadline(end)
	}
	out := plugin.NextWire(c.Name(), c.Next, ctx, w, q)
	q.SetDeadline(before) // and nothing else: the size that bufsize has left is that of the reply
	return out
}

// WireSelf returns c.
func (c Cancel) WireSelf() plugin.Handler { return c }

func (c Cancel) after() time.Duration {
	if c.timeout == 0 {
		return defaultTimeout
	}
	return c.timeout
}

var directive = corefile.Define(&corefile.Directive[Cancel]{
	Name: pluginName,
	Args: corefile.Args[Cancel]{Syntax: "[TIMEOUT]", Max: 1, Set: func(c *Cancel, l *corefile.Line) error {
		if len(l.Args) == 0 {
			return nil
		}
		d, err := time.ParseDuration(l.Args[0])
		if err != nil {
			return fmt.Errorf("invalid duration: %q", l.Args[0])
		}
		if d <= 0 {
			return fmt.Errorf("invalid negative duration: %q", l.Args[0])
		}
		c.timeout = d
		return nil
	}},
})

func setup(c *caddy.Controller) error {
	var settings Cancel
	if err := directive.Parse(c, &settings); err != nil {
		return err
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		return Cancel{Next: next, timeout: settings.timeout}
	})
	return nil
}
