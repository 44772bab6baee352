package external

import (
	"context"
	"errors"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// backend is the services of one query, for the functions of package plugin.
type backend struct {
	*External
	name     string // that was asked for
	services []msg.Service
}

var (
	errOther = errors.New("not the name that was asked for")
	errLoop  = errors.New("too many aliases lead here again")
)

// Services implements plugin.ServiceBackend. Where a service leads to is asked of the server, whatever zone it lies in.
func (b *backend) Services(_ context.Context, state request.Request, _ bool, _ plugin.Options) ([]msg.Service, error) {
	if state.Name() != b.name {
		return nil, errOther
	}
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
	ctx, ok := upstream.Again(ctx, upstream.MaxLoops)
	if !ok {
		return nil, errLoop
	}
	return b.upstream.Lookup(ctx, state, name, typ)
}

// IsNameError implements plugin.ServiceBackend.
func (b *backend) IsNameError(err error) bool { return errors.Is(err, errOther) }

// Serial and MinTTL implement plugin.ServiceBackend.
func (b *backend) Serial(state request.Request) uint32 { return b.source.ExternalSerial(state.Zone) }
func (b *backend) MinTTL(request.Request) uint32       { return b.ttl }
