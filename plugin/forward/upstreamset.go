package forward

import (
	"math/rand/v2"
	"time"

	"github.com/coredns/coredns/plugin/pkg/proxy"
)

// upstreamSet is the upstreams of a directive as they are for one query: the view of its course.
type upstreamSet struct {
	forward   *Forward
	upstreams []*proxy.Proxy
}

func (f *upstreamSet) down(up int) bool { return f.upstreams[up].Down(f.forward.maxFails) }
func (f *upstreamSet) chance(n int) int { return rand.IntN(n) }

// Took implements policy.Timed.
func (f *upstreamSet) Took(up int) time.Duration { return f.upstreams[up].Latency().Smooth() }

func (f *upstreamSet) patience(up int) time.Duration { return f.upstreams[up].Latency().Slow() }
