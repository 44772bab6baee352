package plugin

import (
	"context"
	"sync"

	"github.com/miekg/dns"
)

// Path follows one query through the message lane: which plugin has it now, and
// which one wrote the reply. The server puts one into the query's context; a
// handler may leave goroutines behind that write later, so it is guarded.
type Path struct {
	// Trail is told of each plugin that gets the query; nil if nobody wants to know. It is set before the first one.
	Trail *Trail

	mu    sync.Mutex
	at    string
	wrote string
}

// PathKey is the context key of a *Path.
type PathKey struct{}

// PathFrom is the query's path, nil outside of a server.
func PathFrom(ctx context.Context) *Path {
	p, _ := ctx.Value(PathKey{}).(*Path)
	return p
}

// Enter notes that the plugin name has the query, and returns who had it before.
func (p *Path) Enter(name string) (before string) {
	p.mu.Lock()
	before, p.at = p.at, name
	p.mu.Unlock()
	return before
}

// Leave notes that the query went back up to before.
func (p *Path) Leave(before string) {
	p.mu.Lock()
	p.at = before
	p.mu.Unlock()
}

// At is the plugin that has the query.
func (p *Path) At() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// Write notes that the plugin that has the query writes a reply. The last one counts.
func (p *Path) Write() {
	p.mu.Lock()
	p.wrote = p.at
	p.mu.Unlock()
}

// Wrote is the plugin that wrote the reply, "" if none did.
func (p *Path) Wrote() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrote
}

// PluginTracker is a dns.ResponseWriter that wants to know which plugin writes to
// it. Within a server Path knows it; the interface serves chains that are run by hand.
type PluginTracker interface {
	SetPlugin(name string)
	GetPlugin() string
}

// trackedWriter tells its tracker the innermost plugin that writes.
type trackedWriter struct {
	Wrapped
	tracker PluginTracker
	name    string
	told    bool
}

func (w *trackedWriter) WriteMsg(m *dns.Msg) error {
	if !w.told {
		w.tracker.SetPlugin(w.name)
	}
	return w.ResponseWriter.WriteMsg(m)
}

// SetPlugin is called by a wrapper further in, whose plugin is the true writer.
func (w *trackedWriter) SetPlugin(name string) {
	w.told = true
	w.tracker.SetPlugin(name)
}

func (w *trackedWriter) GetPlugin() string { return w.tracker.GetPlugin() }
