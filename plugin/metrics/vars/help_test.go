package vars

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// What metrics tell of themselves is what CoreDNS 1.14.7 says, as dashboards show it.
func TestHelp(t *testing.T) {
	for want, c := range map[string]prometheus.Collector{
		"Counter of DNS requests made per zone, protocol and family.":                       RequestCount,
		"Histogram of the time (in seconds) each request took per zone.":                    RequestDuration,
		"Size of the EDNS0 UDP buffer in bytes (64K for TCP) per zone and protocol.":        RequestSize,
		"Counter of DNS requests with DO bit set per zone.":                                 RequestDo,
		"Size of the returned response in bytes.":                                           ResponseSize,
		"Counter of response status codes.":                                                 ResponseRcode,
		"A metrics that counts the number of panics.":                                       Panic,
		"A metric that indicates whether a plugin is enabled on per server and zone basis.": PluginEnabled,
	} {
		descs := make(chan *prometheus.Desc, 1)
		c.Describe(descs)
		if got := (<-descs).String(); !strings.Contains(got, fmt.Sprintf("help: %q", want)) {
			t.Errorf("%s, want %q", got, want)
		}
	}
}
