// Package ready serves an endpoint that tells whether the server is ready to answer queries: it asks the plugins that need
// time before they can.
//
//	GET /ready ──▶ monitor ──Ready──▶ kubernetes, erratic, ... ──▶ OK, or who is not ready
//
// All blocks of a Corefile that have the directive share one monitor. In a reload the old instance's monitor answers until the
// new instance has taken over. Start at setup and monitor.waiting.
package ready

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/endpoint"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/parse"

	"github.com/coredns/caddy"
)

const (
	pluginName  = "ready"
	defaultAddr = ":8181"
	path        = "/ready"
)

var logger = log.NewWithPlugin(pluginName)

func init() { plugin.Register(pluginName, setup) }

// Readiness is a plugin that is not ready from the start.
type Readiness interface {
	// Ready reports whether the plugin can answer queries. It is called for each request of the endpoint and must not wait.
	Ready() bool
}

// monitor knows the plugins of one instance that have to be asked.
type monitor struct {
	mu         sync.Mutex
	listens    <-chan struct{} // closed when the servers have their sockets; nil if there are none
	continuous bool            // ask also those that have been ready once
	watched    []watched
}

// watched is one plugin of one block.
type watched struct {
	name   string
	plugin Readiness
	ready  bool // it has been
}

// watch adds the plugins of a block's chain, and what is closed when the servers have their sockets.
func (m *monitor) watch(chain []plugin.Handler, listens <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listens = listens
	for _, h := range chain {
		if r, ok := h.(Readiness); ok {
			m.watched = append(m.watched, watched{name: h.Name(), plugin: r})
		}
	}
}

// waiting is the names of the plugins that are not ready, sorted, each once. A plugin that has been ready is not asked any
// more, unless the monitor is continuous.
func (m *monitor) waiting() (names []string) {
	m.mu.Lock()
	ask := slices.Clone(m.watched)
	continuous := m.continuous
	m.mu.Unlock()

	for i := range ask {
		w := &ask[i]
		if w.ready && !continuous {
			continue
		}
		if w.ready = w.plugin.Ready(); !w.ready {
			names = append(names, w.name)
		}
	}
	m.mu.Lock()
	for i := range ask {
		m.watched[i].ready = m.watched[i].ready || ask[i].ready
	}
	m.mu.Unlock()

	slices.Sort(names)
	return slices.Compact(names)
}

// patience is how long the endpoint, which is there first, waits for the servers' sockets: some milliseconds most often.
const patience = time.Second

// listening waits until the servers have their sockets: who hears that all is ready asks them at once.
func (m *monitor) listening(r *http.Request) {
	m.mu.Lock()
	listens := m.listens
	m.mu.Unlock()
	if listens == nil {
		return
	}
	select {
	case <-listens:
	case <-r.Context().Done():
	case <-time.After(patience):
	}
}

// ServeHTTP answers OK, or with the names of the plugins that are not ready.
func (m *monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	names := strings.Join(m.waiting(), ",")
	if names == "" {
		m.listening(r)
		io.WriteString(w, http.StatusText(http.StatusOK))
		return
	}
	logger.Infof("Plugins not ready: %q", names)
	w.WriteHeader(http.StatusServiceUnavailable)
	io.WriteString(w, names)
}

// settings is what the directive configures.
type settings struct {
	addr       string
	continuous bool
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[settings]{Syntax: "[ADDRESS]", Max: 1, Set: func(s *settings, l *corefile.Line) error {
		if len(l.Args) == 0 {
			return nil
		}
		s.addr = l.Args[0]
		return parse.ListenAddr(s.addr)
	}},
	Options: corefile.Table[settings]{
		corefile.Row("monitor", "until-ready|continuously", "how long plugins are asked", 1, 1, func(s *settings, l *corefile.Line) error {
			switch mode := l.Args[0]; mode {
			case "until-ready", "continuously":
				s.continuous = mode == "continuously"
				return nil
			default:
				return l.Errf("monitor type '%s' not supported%s", mode, corefile.Choice(mode, []string{"until-ready", "continuously"}))
			}
		}),
	},
})

// monitorKey is the instance's key for its monitor.
type monitorKey struct{}

func setup(c *caddy.Controller) error {
	s := settings{addr: defaultAddr}
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	m, ok := c.Get(monitorKey{}).(*monitor)
	if !ok {
		m = new(monitor)
		c.Set(monitorKey{}, m)
	}
	m.continuous = s.continuous // that of the last block counts
	config := dnsserver.GetConfig(c)
	c.OnStartup(func() error {
		m.watch(config.Chain(), dnsserver.Listens(c))
		return nil
	})
	endpoint.Manage(c, endpoint.Spec{Addr: s.addr, Handlers: map[string]http.Handler{path: m}})
	return nil
}
