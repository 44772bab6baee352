package forward

import (
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
	return policy.List(l.Policy, upstreams)
}
