package external

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// backend is the services of one query, for the functions of package plugin.
type backend struct {
	*External
	services []msg.Service
}

// Services implements plugin.ServiceBackend.
func (b *backend) Services(_ context.Context, state request.Request, _ bool, _ plugin.Options) ([]msg.Service, error) {
	return b.services, nil
}

// Reverse, Records: nobody asks for these.
func (b *backend) Reverse(context.Context, request.Request, bool, plugin.Options) ([]msg.Service, error) {
	return nil, nil
}
func (b *backend) Records(context.Context, request.Request, bool) ([]msg.Service, error) {
	return nil, nil
}

// Lookup resolves the name of a load balancer.
func (b *backend) Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error) {
	return b.upstream.Lookup(ctx, state, name, typ)
}

// IsNameError implements plugin.ServiceBackend: there are services, or nobody asks.
func (b *backend) IsNameError(error) bool { return false }

// Serial and MinTTL implement plugin.ServiceBackend.
func (b *backend) Serial(state request.Request) uint32 { return b.source.ExternalSerial(state.Zone) }
func (b *backend) MinTTL(request.Request) uint32       { return b.ttl }
