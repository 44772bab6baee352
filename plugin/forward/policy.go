package forward

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/policy"
	"github.com/coredns/coredns/plugin/pkg/proxy"
)

// Policy decides in which order upstreams are tried.
type Policy interface {
	List([]*proxy.Proxy) []*proxy.Proxy
	String() string
}

// listing is a policy.Policy as a Policy.
type listing struct{ policy.Policy }

// List is upstreams in the order of the policy.
func (l listing) List(upstreams []*proxy.Proxy) []*proxy.Proxy {
	m, ok := l.Policy.(policy.Measuring)
	if !ok {
		return policy.List(l.Policy, upstreams)
	}
	list := make([]*proxy.Proxy, 0, len(upstreams))
	for _, i := range m.OrderBy(nil, len(upstreams), timed(upstreams)) {
		list = append(list, upstreams[i])
	}
	return list
}

// timed is upstreams as a policy.Timed.
type timed []*proxy.Proxy

// Took implements policy.Timed.
func (t timed) Took(i int) time.Duration {
	if l := t[i].Latency(); l != nil {
		return l.Smooth()
	}
	return 0
}
