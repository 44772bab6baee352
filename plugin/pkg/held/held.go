// Package held takes series of gauges away when nobody tells anything of them any more.
//
// What a gauge tells of a file, or of a zone, is wrong once no configuration has that any more: who watches it would be
// alarmed by what nobody uses. In a reload two configurations tell of the same for a moment, and so may several server
// blocks: so the holders of a series are counted. Any goroutine may use a Gauge. Start at Gauge.
package held

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Gauge is a gauge whose series are there as long as somebody holds them.
type Gauge struct {
	*prometheus.GaugeVec

	mu      sync.Mutex
	holders map[string]int // by the values of the labels
}

// Of makes a Gauge of a vector.
func Of(vec *prometheus.GaugeVec) *Gauge { return &Gauge{GaugeVec: vec, holders: map[string]int{}} }

func key(values []string) string { return strings.Join(values, "\x00") }

// Hold says that somebody tells of the series with these values of labels from now on. It does not make it.
func (g *Gauge) Hold(values ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holders[key(values)]++
}

// Release ends a Hold. Whoever calls it sets the series no more.
func (g *Gauge) Release(values ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := key(values)
	if g.holders[k]--; g.holders[k] <= 0 {
		delete(g.holders, k)
		g.DeleteLabelValues(values...)
	}
}
