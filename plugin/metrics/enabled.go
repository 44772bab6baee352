package metrics

import (
	"net"
	"sync"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
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
	for _, key := range keys {
		proto, zone, port, err := dnsserver.SplitProtocolHostPort(key)
		if err != nil {
			continue // only in tests that have no keys in normal form
		}
		for _, host := range cfg.ListenHosts {
			server := proto + "://" + net.JoinHostPort(host, port)
			for _, name := range names {
				rows = append(rows, row{server, zone, cfg.ViewName, name})
			}
		}
	}
	return rows
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
