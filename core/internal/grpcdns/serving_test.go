package grpcdns

import (
	"crypto/tls"
	"testing"

	ot "github.com/opentracing/opentracing-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin"
)

// served is a Transport at work.
type served struct {
	*Transport
	*service.Service
	addr string
	end  func() error // stops it, and waits for that
}

// serviceFor is a Service of DNS over gRPC with that handler.
func serviceFor(t testing.TB, h plugin.Handler, config *tls.Config, tracer ot.Tracer) *service.Service {
	t.Helper()
	s := coretest.Service(t, coretest.Label(t), h)
	s.Streams, s.HeaderBytes = 256, 16<<10
	s.Proto = &Settings{TLS: config, Tracer: tracer}
	return s
}

func tlsConfig(t testing.TB) *tls.Config { return coretest.Certificate(t, "h2") }

// serve serves s on loopback.
func serve(t testing.TB, s *service.Service) *served {
	t.Helper()
	from := conn.Proxied(coretest.ListenTCP(t), nil, s.Label)
	g := New(s)
	g.ListenOn(from)
	end := coretest.Serving(t, g, func() error { return g.Serve(from) })
	return &served{g, s, from.Addr().String(), end}
}

// packet is a query for name, as the service takes it.
func packet(t testing.TB, name string) *pb.DnsPacket {
	t.Helper()
	return &pb.DnsPacket{Msg: coretest.Packed(t, coretest.Query(name))}
}

func code(err error) codes.Code { return status.Code(err) }
