package metrics

import (
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"
)

// facts is one query with its reply, as it is counted.
type facts struct {
	server, zone, view string // where it was served
	qtype              uint16
	do                 bool
	size               int // of the query in octets
	proto              string
	family             int // 1 for IPv4, 2 for IPv6

	rcode      string
	plugin     string // which wrote the reply, "" if none did
	replySize  int    // in octets, without compression and OPT record
	unanswered bool
	start      time.Time
}

var familyLabels = [...]string{1: "1", 2: "2"}

// count adds f to all metrics of queries.
func (f *facts) count() {
	vars.RequestCount.WithLabelValues(f.server, f.zone, f.view, f.proto, familyLabels[f.family], vars.TypeLabel(f.qtype)).Inc()
	if f.do {
		vars.RequestDo.WithLabelValues(f.server, f.zone, f.view).Inc()
	}
	vars.RequestDuration.WithLabelValues(f.server, f.zone, f.view).Observe(time.Since(f.start).Seconds())
	vars.RequestSize.WithLabelValues(f.server, f.zone, f.view, f.proto).Observe(float64(f.size))
	vars.ResponseSize.WithLabelValues(f.server, f.zone, f.view, f.proto).Observe(float64(f.replySize))
	vars.ResponseRcode.WithLabelValues(f.server, f.zone, f.view, f.rcode, f.plugin).Inc()
	if f.unanswered {
		vars.Unanswered.WithLabelValues(f.server, f.zone, f.view).Inc()
	}
}
