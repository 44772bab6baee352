package dnsserver

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"strings"
	"time"

	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// maxGRPCMessage is a DNS message with the field header that the service puts before it.
const maxGRPCMessage = dns.MaxMsgSize + 4

// grpcProbe is how often a client that says nothing is asked whether it is there.
const grpcProbe = time.Minute

// ServergRPC serves DNS over gRPC, as the service of package pb.
type ServergRPC struct {
	*Server
	*pb.UnimplementedDnsServiceServer
	grpcServer *grpc.Server
	tlsConfig  *tls.Config
}

// NewServergRPC is a ServergRPC for the blocks of group, at addr (grpc://:443). It opens no socket.
func NewServergRPC(addr string, group []*Config) (*ServergRPC, error) {
	s, err := NewServer(addr, group)
	if err != nil {
		return nil, err
	}
	sg := &ServergRPC{Server: s, UnimplementedDnsServiceServer: new(pb.UnimplementedDnsServiceServer), tlsConfig: tlsConfigOf(group, "h2")}
	streams := uint32(math.MaxUint32)
	if n := s.limits.streams; n > 0 {
		streams = uint32(n)
	}
	opts := []grpc.ServerOption{
		grpc.MaxConcurrentStreams(streams), grpc.MaxRecvMsgSize(maxGRPCMessage), grpc.MaxSendMsgSize(maxGRPCMessage),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: grpcProbe}), grpc.InTapHandle(sg.limitReading),
		grpc.ReadBufferSize(readSpace), grpc.SharedWriteBuffer(true), // idle connections take little
	}
	if n := s.limits.headerBytes; n > 0 {
		opts = append(opts, grpc.MaxHeaderListSize(uint32(n)))
	}
	if n := s.limits.handshake; n > 0 {
		opts = append(opts, grpc.ConnectionTimeout(n))
	}
	if s.tracer != nil {
		opts = append(opts, grpc.UnaryInterceptor(joinSpan(s.tracer)))
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
	if s.tlsConfig == nil {
		s.warnPlain()
	}
	a := newAdmission(s.Server)
	if !s.start(grpcStopper{s.grpcServer, a}) {
		return l.Close()
	}
	return s.grpcServer.Serve(&admissionListener{s.wrapListener(l), a})
}

// Shutdown stops the server. See Server.Stop.
func (s *ServergRPC) Shutdown() error { return s.Stop() }

// Stop stops the server. See Server.Stop.
func (s *ServergRPC) Stop() (err error) { return s.Server.Stop() }

type grpcStopper struct {
	*grpc.Server
	admission *admission
}

func (g grpcStopper) stop(ctx context.Context) error {
	g.admission.close()
	ended := make(chan struct{})
	go func() { g.GracefulStop(); close(ended) }()
	defer time.AfterFunc(drainTime, g.admission.evictIdle).Stop() // those whose clients do not close them, though they are told
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
	if t, ok := ctx.Value(readingKey{}).(*time.Timer); ok {
		t.Stop()
	}
	if n := len(in.GetMsg()); n > dns.MaxMsgSize || s.tooLong(n) {
		s.limited("query_bytes")
		return nil, status.Errorf(codes.ResourceExhausted, "dns message exceeds size limit: %d", n)
	}
	w, err := s.grpcWriter(ctx)
	if err != nil {
		return nil, err
	}
	if w.conn != nil {
		w.conn.begin()
		defer w.conn.end()
	}
	err = s.serveBytes(ctx, w, in.GetMsg())
	switch {
	case w.msg != nil:
		return &pb.DnsPacket{Msg: w.msg}, nil
	case errors.Is(err, errCrowded):
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	case err != nil:
		return nil, status.Errorf(codes.InvalidArgument, "unpacking a query: %v", err)
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return nil, status.Error(codes.Unavailable, "the query was dropped")
}

// grpcWriter keeps the reply for the call's result.
type grpcWriter struct {
	responder
	conn *admittedConn // nil if the call came without a socket of ours
	msg  []byte
}

// grpcWriter is the writer for a call.
func (s *ServergRPC) grpcWriter(ctx context.Context) (*grpcWriter, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, status.Error(codes.Internal, "no peer in gRPC context")
	}
	w := &grpcWriter{}
	remote, ok := p.Addr.(*net.TCPAddr)
	if a, ours := p.Addr.(*admittedAddr); ours {
		remote, w.conn, ok = a.TCPAddr, a.conn, true
	}
	if !ok {
		return nil, status.Errorf(codes.Internal, "no TCP peer in gRPC context: %v", p.Addr)
	}
	w.responder = responder{out: w, server: s.Server, network: "tcp", remote: remote, local: p.LocalAddr, limit: dns.MaxMsgSize}
	if w.local == nil {
		w.local = &net.TCPAddr{}
	}
	if t, ok := p.AuthInfo.(credentials.TLSInfo); ok {
		w.tls = &t.State
	}
	return w, nil
}

func (w *grpcWriter) send(b []byte) error {
	w.msg = append([]byte(nil), b...)
	return nil
}

// Close and Hijack do nothing: the connection is not the query's.
func (w *grpcWriter) Close() error { return nil }
func (w *grpcWriter) Hijack()      {}

// readingKey holds the timer that ends a call whose message does not come.
type readingKey struct{}

var errSlowCall = errors.New("the message did not come in time")

// limitReading is called when the header of a call has come, and gives the client time for its message.
func (s *ServergRPC) limitReading(ctx context.Context, _ *tap.Info) (context.Context, error) {
	ctx, cancel := context.WithCancelCause(ctx) //nolint:govet // it ends with the call's context
	t := time.AfterFunc(s.ReadTimeout, func() {
		if ctx.Err() == nil {
			s.limited("read_time")
			cancel(errSlowCall)
		}
	})
	return context.WithValue(ctx, readingKey{}, t), nil
}
