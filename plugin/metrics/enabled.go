package metrics

import (
	"net"
	"sync"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"

	"github.com/coredns/caddy"
)

// row is the labels of one series of plugin_enabled.
type row struct{ server, zone, view, name string }

// table holds how many instances say that a row is enabled: in a reload, two do for a moment.
type table struct {
	mu   sync.Mutex
	rows map[row]int
}

var enabled = table{rows: map[row]int{}}

func (t *table) add(rows []row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range rows {
		t.rows[r]++
		vars.PluginEnabled.WithLabelValues(r.server, r.zone, r.view, r.name).Set(1)
	}
}

func (t *table) remove(rows []row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range rows {
		if t.rows[r]--; t.rows[r] <= 0 {
			delete(t.rows, r)
			vars.PluginEnabled.DeleteLabelValues(r.server, r.zone, r.view, r.name)
		}
	}
}

// rowsOf is the rows of a server block whose keys, in their normal form, are given and whose first key's config is
// cfg: one for each key, address and plugin.
func rowsOf(keys []string, cfg *dnsserver.Config) (rows []row) {
	names := namesOf(cfg.Chain())
	eachServer(keys, cfg, func(server, zone string) {
		for _, name := range names {
			rows = append(rows, row{server, zone, cfg.ViewName, name})
		}
	})
	return rows
}

// eachServer calls f for each address of each key of a server block, with the value of the label server and the key's zone.
func eachServer(keys []string, cfg *dnsserver.Config, f func(server, zone string)) {
	for _, key := range keys {
		proto, zone, port, err := dnsserver.SplitProtocolHostPort(key)
		if err != nil {
			continue // only in tests that have no keys in normal form
		}
		for _, host := range cfg.ListenHosts {
			f(proto+"://"+net.JoinHostPort(host, port), zone)
		}
	}
}

// FromZero has zero called at the start for each value that the label server has in the server block that c sets up, so that
// plugins make the counters whose labels they know: who watches them sees the first step, too.
func FromZero(c *caddy.Controller, zero func(server string)) {
	config, keys := dnsserver.GetConfig(c), c.ServerBlockKeys
	c.OnStartup(func() error { // when the plugin bind has had its say
		eachServer(keys, config, func(server, _ string) { zero(server) })
		return nil
	})
}

// namesOf is the names of the plugins in a chain, each once.
func namesOf(chain []plugin.Handler) (names []string) {
	seen := map[string]bool{}
	for _, h := range chain {
		if name := h.Name(); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}
