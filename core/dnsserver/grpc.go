package dnsserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"strings"

	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// maxGRPCMessage is a DNS message with the field header that the service puts before it.
const maxGRPCMessage = dns.MaxMsgSize + 4

// ServergRPC serves DNS over gRPC, as the service of package pb.
type ServergRPC struct {
	*Server
	*pb.UnimplementedDnsServiceServer
	grpcServer *grpc.Server
	tlsConfig  *tls.Config
	maxConns   int
}

// NewServergRPC is a ServergRPC for the blocks of group, at addr (grpc://:443). It opens no socket.
func NewServergRPC(addr string, group []*Config) (*ServergRPC, error) {
	s, err := NewServer(addr, group)
	if err != nil {
		return nil, err
	}
	sg := &ServergRPC{
		Server:    s,
		tlsConfig: tlsConfigOf(group, "h2"),
		maxConns:  s.limits.connections,
	}
	streams := s.limits.streams
	if streams == 0 {
		streams = math.MaxUint32
	}
	opts := []grpc.ServerOption{
		grpc.MaxConcurrentStreams(uint32(streams)), grpc.MaxRecvMsgSize(maxGRPCMessage), grpc.MaxSendMsgSize(maxGRPCMessage),
	}
	if sg.tlsConfig != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(sg.tlsConfig)))
	}
	sg.grpcServer = grpc.NewServer(opts...)
	pb.RegisterDnsServiceServer(sg.grpcServer, sg)
	return sg, nil
}

// Listen opens the TCP socket.
func (s *ServergRPC) Listen() (net.Listener, error) {
	return reuseport.Listen("tcp", strings.TrimPrefix(s.Addr, transport.GRPC+"://"))
}

// ListenPacket opens nothing: there is no UDP here.
func (s *ServergRPC) ListenPacket() (net.PacketConn, error) { return nil, nil }

// ServePacket does nothing: there is no UDP here.
func (s *ServergRPC) ServePacket(net.PacketConn) error { return nil }

// Serve serves calls that come on connections of l until the server is stopped.
func (s *ServergRPC) Serve(l net.Listener) error {
	l = s.wrapListener(l)
	if s.maxConns > 0 {
		l = netutil.LimitListener(l, s.maxConns)
	}
	if s.tlsConfig == nil {
		s.warnPlain()
	}
	if !s.start(grpcStopper{s.grpcServer}) {
		return l.Close()
	}
	return s.grpcServer.Serve(l)
}

// Shutdown stops the server. See Server.Stop.
func (s *ServergRPC) Shutdown() error { return s.Stop() }

// Stop stops the server. See Server.Stop.
func (s *ServergRPC) Stop() (err error) { return s.Server.Stop() }

type grpcStopper struct{ *grpc.Server }

func (g grpcStopper) stop(ctx context.Context) error {
	ended := make(chan struct{})
	go func() { g.GracefulStop(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		g.Server.Stop() // ends GracefulStop, too
		<-ended
		return ctx.Err()
	}
}

// Query answers one call.
func (s *ServergRPC) Query(ctx context.Context, in *pb.DnsPacket) (*pb.DnsPacket, error) {
	if n := len(in.GetMsg()); n > dns.MaxMsgSize {
		return nil, fmt.Errorf("dns message exceeds size limit: %d", n)
	}
	msg, err := dnsutil.UnpackRequest(in.GetMsg())
	if err != nil {
		return nil, err
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, status.Error(codes.Internal, "no peer in gRPC context")
	}
	remote, ok := p.Addr.(*net.TCPAddr)
	if !ok {
		return nil, status.Errorf(codes.Internal, "no TCP peer in gRPC context: %v", p.Addr)
	}
	out := &grpcOutlet{}
	w := &responder{out: out, network: "tcp", remote: remote, local: p.LocalAddr, limit: dns.MaxMsgSize}
	if w.local == nil {
		w.local = &net.TCPAddr{}
	}
	if t, ok := p.AuthInfo.(credentials.TLSInfo); ok {
		w.tls = &t.State
	}
	s.ServeDNS(ctx, w, msg)
	if out.msg == nil {
		return nil, status.Error(codes.Unavailable, "the query was dropped")
	}
	return &pb.DnsPacket{Msg: out.msg}, nil
}

// grpcOutlet keeps the reply for the call's result.
type grpcOutlet struct{ msg []byte }

func (o *grpcOutlet) send(b []byte) error {
	o.msg = append([]byte(nil), b...)
	return nil
}

func (o *grpcOutlet) Close() error { return nil }
func (o *grpcOutlet) Hijack()      {}
