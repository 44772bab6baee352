package forward

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// UpstreamStatus implements status.Upstreams.
func (f *Forward) UpstreamStatus() []status.Upstream {
	var all []status.Upstream
	for _, p := range *f.upstreams.Load() {
		u := status.Upstream{
			Plugin: pluginName, From: wire.Text(f.zones.From), Address: p.Addr(), Protocol: p.Protocol(), Down: p.Down(f.maxFails), Fails: p.Fails(),
		}
		if l := p.Latency(); l != nil {
			u.Smooth = float64(l.Smooth()) / float64(time.Millisecond)
		}
		all = append(all, u)
	}
	return all
}
