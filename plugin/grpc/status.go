package grpc

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// UpstreamStatus implements status.Upstreams.
func (g *GRPC) UpstreamStatus() []status.Upstream {
	all := make([]status.Upstream, len(g.proxies))
	for i, p := range g.proxies {
		all[i] = status.Upstream{
			Plugin: pluginName, From: wire.Text(g.zones.From), Address: p.addr, Protocol: "grpc",
			Smooth: float64(p.latency.Smooth()) / float64(time.Millisecond),
		}
	}
	return all
}
