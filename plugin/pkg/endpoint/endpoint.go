// Package endpoint serves the HTTP endpoints of plugins (health, ready, metrics, profiles) in such a way that a
// reload never takes them away.
//
//	plugin's setup ──Manage──▶ Lease ──Open──▶ server of the address ◀── Lease of the instance that takes over
//	                                              │
//	                            handlers of all leases of the instance that serves now
//
// There is one table of HTTP servers for the process, by address. Plugins hold leases on a server; leases of one
// instance share it, each with its own paths. In a reload, the new instance's leases find the old one's server and
// wait: the old handlers answer until the old instance is shut down, then the new ones do. If the reload fails, the
// new leases end and nothing has happened. A server ends with its last lease; connections that are idle are closed
// at once, the others when their requests are answered, or after five seconds.
//
// All functions may be called by several goroutines. Start at Manage.
package endpoint

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/coredns/caddy"
)

// Spec is what a plugin wants to serve.
type Spec struct {
	// Addr is where to listen, HOST:PORT, or unix://PATH for a socket that only the user of the process can use. Port 0
	// is any port; leases with it share a server only within an instance.
	Addr string
	// Handlers serve the plugin's paths, by the patterns of http.ServeMux. Of leases of one instance with the same
	// pattern the first one's serves.
	Handlers map[string]http.Handler
	// WebConfig is a file that configures TLS and users, in the form of the Prometheus exporters, "" for plain
	// HTTP. A server is only shared by leases with the same one; of leases of one instance that serve the same, the
	// first one's counts, and a line of the log tells so.
	WebConfig string
	// Long says that requests may last: there is no limit to the time of a reply, which else is five seconds.
	Long bool
	// Opened, if set, is called when the endpoint is served, with its address; Closed, when the lease ends for
	// whatever reason, before the socket is closed. So what Opened starts ends with Closed also if the instance
	// fails to start after all.
	Opened func(net.Addr)
	Closed func()
	// Failed, if set, is called with the error if the endpoint cannot be opened, and the instance starts without
	// it; else it does not start.
	Failed func(error)
	// BeforeClose, if set, is called when the process is about to end, before the endpoint is closed, if the lease was
	// to open. It may wait.
	BeforeClose func()
}

// Manage makes the endpoint of spec one of the instance that c sets up: it opens when the instance starts, passes
// over in a reload and closes at the end.
func Manage(c *caddy.Controller, spec Spec) *Lease {
	l := New(c.Context(), spec)
	c.OnStartup(l.Open)
	l.Follow(c)
	return l
}

// Follow has the lease pass over in a reload and close at the end, as Manage does; who calls it opens the lease. One
// of a configuration that fails to start ends with that, too: where it was to take the place of one without
// endpoints, nobody else would end it.
func (l *Lease) Follow(c *caddy.Controller) {
	c.OnRestart(l.Restarting)
	c.OnRestartFailed(l.RestartFailed)
	c.OnShutdown(l.Shutdown)
	c.OnFinalShutdown(l.FinalShutdown)
	if d, ok := c.Context().(interface{ OnEnd(end func() error) }); ok {
		d.OnEnd(func() error { l.Close(); return nil })
	}
}

// Lease is a plugin's part in a server. Manage calls its methods where caddy wants them called.
type Lease struct {
	spec   Spec
	owner  any
	opened atomic.Bool // Open was called

	// Guarded by the table's lock.
	server *server // nil if not open
	heirOf any     // the owner that was being replaced when the lease was opened, nil if none or over
}

// New returns a lease that is not open yet. owner stands for the instance; nil is one of its own.
func New(owner any, spec Spec) *Lease {
	l := &Lease{spec: spec, owner: owner}
	if owner == nil {
		l.owner = l
	}
	return l
}

// Open opens the endpoint, unless it is open. The error tells address and cause; with Failed in the spec there is none.
func (l *Lease) Open() error {
	l.opened.Store(true)
	addr, opened, err := all.open(l)
	switch {
	case opened && l.spec.Opened != nil:
		l.spec.Opened(addr)
	case err != nil && l.spec.Failed != nil:
		l.spec.Failed(err)
		return nil
	case err != nil:
		return fmt.Errorf("opening the endpoint: %w", err)
	}
	return nil
}

// Restarting says that another instance is about to take the owner's place.
func (l *Lease) Restarting() error {
	all.restarting(l.owner)
	return nil
}

// RestartFailed says that it did not: what it opened ends.
func (l *Lease) RestartFailed() error {
	all.restartFailed(l.owner)
	return nil
}

// Shutdown says that the owner is shut down. If another instance took its place, all its leases end; at the end of
// the process the endpoint answers on, until FinalShutdown.
func (l *Lease) Shutdown() error {
	all.handOver(l.owner)
	return nil
}

// FinalShutdown calls BeforeClose and ends the lease. If the process ends in the middle of a reload, it is called for
// the next configuration, too, which nobody has asked anything.
func (l *Lease) FinalShutdown() error {
	if l.spec.BeforeClose != nil && l.opened.Load() {
		l.spec.BeforeClose()
	}
	l.Close()
	return nil
}

// Close ends the lease.
func (l *Lease) Close() { all.close(l) }
