//go:build !nogrpc

package dnsserver

import (
	"context"
	"net"

	"github.com/coredns/coredns/core/internal/grpcdns"
	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

func init() {
	makers[transport.GRPC] = func(addr string, group []*Config) (server, error) { return NewServergRPC(addr, group) }
}

// ServergRPC serves DNS over gRPC, as the service of package pb.
type ServergRPC struct {
	*Server
	*pb.UnimplementedDnsServiceServer
	settings *grpcdns.Settings
}

// NewServergRPC is a ServergRPC for the blocks of group, at addr (grpc://:443). It opens no socket.
func NewServergRPC(addr string, group []*Config) (*ServergRPC, error) {
	s, err := NewServer(addr, group)
	if err != nil {
		return nil, err
	}
	settings := &grpcdns.Settings{TLS: tlsConfigOf(group, "h2")}
	s.proto = settings
	return &ServergRPC{Server: s, UnimplementedDnsServiceServer: new(pb.UnimplementedDnsServiceServer), settings: settings}, nil
}

// Listen opens the TCP socket.
func (s *ServergRPC) Listen() (net.Listener, error) { return s.listenTCP() }

// ListenPacket opens nothing: there is no UDP here.
func (s *ServergRPC) ListenPacket() (net.PacketConn, error) { return nil, nil }

// ServePacket does nothing: there is no UDP here.
func (s *ServergRPC) ServePacket(net.PacketConn) error { return s.nothingToServe() }

// Serve serves calls that come on connections of l until the server is stopped.
func (s *ServergRPC) Serve(l net.Listener) error {
	_, opened, over := s.serving()
	defer over()
	if s.settings.TLS == nil {
		s.warnPlain()
	}
	s.settings.Tracer = s.Tracer() // plugins have started
	t, ok := takeOver(s.Server, func(t *grpcdns.Transport) bool { return t.Fits(s.service()) })
	if !ok {
		t = grpcdns.New(s.service())
	}
	l = s.wrapListener(l)
	t.ListenOn(l)
	if !s.start(t) {
		t.Stop(context.Background())
		return nil
	}
	opened()
	return t.Serve(l)
}

// Shutdown stops the server. See Server.Stop.
func (s *ServergRPC) Shutdown() error { return s.Stop() }

// Stop stops the server. See Server.Stop.
func (s *ServergRPC) Stop() (err error) { return s.Server.Stop() }

// Query answers one call.
func (s *ServergRPC) Query(ctx context.Context, in *pb.DnsPacket) (*pb.DnsPacket, error) {
	return grpcdns.Query(ctx, s.service(), in)
}
