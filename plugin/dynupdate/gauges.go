package dynupdate

import (
	"slices"
	"sync"

	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
)

// The figures of zones are read off the stores in use when they are asked for: so nothing stays of a zone that is gone,
// and a reload that fails changes none.

var (
	serialDesc   = gauge(prometheus.BuildFQName(plugin.Namespace, pluginName, "serial"), "The serial of the zone that is served.")
	recordsDesc  = gauge(prometheus.BuildFQName(plugin.Namespace, pluginName, "records"), "The number of records of the zone.")
	bytesDesc    = gauge(prometheus.BuildFQName(plugin.Namespace, pluginName, "bytes"), "The octets of the zone's records in wire form, uncompressed.")
	databaseDesc = gauge(prometheus.BuildFQName(plugin.Namespace, pluginName, "database_bytes"), "The octets of the database.")
	readOnlyDesc = gauge(prometheus.BuildFQName(plugin.Namespace, pluginName, "read_only"), "1 while the database takes no updates.")
	pendingDesc  = gauge(prometheus.BuildFQName(plugin.Namespace, pluginName, "notify_pending"), "1 while secondaries are still to be notified of a change.")
)

func gauge(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"zone_name"}, nil)
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// shown is the stores in use, by their zones, in the order in which they came; its collector tells of the first one of
// each zone. A later one is of a reload, which may fail, or of another view.
var shown = collector{stores: map[string][]*store{}}

func init() { prometheus.MustRegister(&shown) }

// collector implements prometheus.Collector.
type collector struct {
	mu     sync.Mutex
	stores map[string][]*store
}

func (c *collector) add(s *store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stores[s.zone] = append(c.stores[s.zone], s)
}

func (c *collector) remove(s *store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := slices.DeleteFunc(c.stores[s.zone], func(o *store) bool { return o == s }); len(left) > 0 {
		c.stores[s.zone] = left
		return
	}
	delete(c.stores, s.zone)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{serialDesc, recordsDesc, bytesDesc, databaseDesc, readOnlyDesc, pendingDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	first := make([]*store, 0, len(c.stores))
	for _, all := range c.stores {
		first = append(first, all[0])
	}
	c.mu.Unlock()
	for _, s := range first {
		// Its mu is not for here: it is held while a zone is signed.
		tell := func(d *prometheus.Desc, value float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, s.zone)
		}
		v := s.served.Current()
		tell(serialDesc, float64(v.Serial()))
		tell(recordsDesc, float64(v.Records()))
		tell(bytesDesc, float64(v.Octets()))
		tell(databaseDesc, float64(s.size.Load()))
		tell(readOnlyDesc, oneIf(s.readOnly.Load()))
		tell(pendingDesc, oneIf(s.pending.Load() > 0))
	}
}
