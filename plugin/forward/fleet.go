package forward

import (
	"math/rand/v2"
	"time"

	"github.com/coredns/coredns/plugin/pkg/proxy"
)

// fleet is the upstreams of a directive as they are for one query, and so the world of its course.
type fleet struct {
	forward   *Forward
	upstreams []*proxy.Proxy
}

func (f *fleet) down(up int) bool { return f.upstreams[up].Down(f.forward.maxFails) }
func (f *fleet) chance(n int) int { return rand.IntN(n) }

// Took implements policy.Timed.
func (f *fleet) Took(up int) time.Duration { return f.upstreams[up].Latency().Smooth() }

func (f *fleet) patience(up int) time.Duration { return f.upstreams[up].Latency().Slow() }
