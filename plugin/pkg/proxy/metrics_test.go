package proxy

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// series is those of a vector that are about an upstream, by the values of the labels behind its own.
func series(t *testing.T, vec prometheus.Collector, to string) (all []string) {
	t.Helper()
	ch := make(chan prometheus.Metric, 1000)
	vec.Collect(ch)
	close(ch)
	for c := range ch {
		var m dto.Metric
		if err := c.Write(&m); err != nil {
			t.Fatal(err)
		}
		var values []string
		about := false
		for _, l := range m.Label {
			switch l.GetName() {
			case "to":
				about = l.GetValue() == to
			case "proxy_name":
			default:
				values = append(values, l.GetValue())
			}
		}
		if about {
			all = append(all, fmt.Sprint(strings.Join(values, " "), "=", m.Counter.GetValue()))
		}
	}
	slices.Sort(all)
	return all
}

// Counters whose labels are known are there when an upstream has been started.
func TestSeriesFromTheStart(t *testing.T) {
	for i, tc := range []struct {
		protocol string
		secure   bool
		ignored  int
	}{
		{transport.DNS, false, 7}, {transport.DNS, true, 5}, {transport.TLS, true, 5},
		{transport.QUIC, true, 5}, {transport.HTTPS, true, 5}, {transport.HTTPS3, true, 5},
	} {
		addr := fmt.Sprintf("192.0.2.%d:4711", i+1)
		p := proxyTo(t, addr, tc.protocol)
		if tc.secure {
			p.SetTLSConfig(new(tls.Config))
		}
		p.Start(time.Minute)
		if got := series(t, healthcheckFailures, addr); len(got) != 1 {
			t.Errorf("%s: health checks: got %q", tc.protocol, got)
		}
		if got := series(t, repliesIgnored, addr); len(got) != tc.ignored {
			t.Errorf("%s: got %q", tc.protocol, got)
		}
	}
}

var upstreams atomic.Int32

// Hits are counted from the second query on, also if there was none yet.
func TestHitsAreCountedFromTheSecondQuery(t *testing.T) {
	addr := fmt.Sprintf("192.0.2.77:%d", 4711+upstreams.Add(1)) // no other test, and no other run of this one, counts for it
	p := proxyTo(t, addr, transport.DNS)
	for n, want := range []string{"[] []", "[] [udp=1]", "[udp=0] [udp=2]", "[udp=0] [udp=3]"} {
		if n > 0 {
			p.counts.miss(viaUDP)
		}
		if got := fmt.Sprint(series(t, connCacheHits, addr), series(t, connCacheMisses, addr)); got != want {
			t.Errorf("after %d queries: got %s, want %s", n, got, want)
		}
	}
}

func TestRcodeLabel(t *testing.T) {
	for code, want := range map[int]string{0: "NOERROR", 3: "NXDOMAIN", 15: "15", 23: "BADCOOKIE", 4000: "4000"} {
		if got := rcodeLabel(code); got != want {
			t.Errorf("%d: %s", code, got)
		}
	}
}
