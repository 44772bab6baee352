package grpcdns

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/miekg/dns"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/pb"
)

// Query has s answer one call.
func Query(ctx context.Context, s *service.Service, in *pb.DnsPacket) (*pb.DnsPacket, error) {
	// The message has come: limitReading ends here.
	if r, ok := ctx.Value(readingKey{}).(*reading); ok {
		r.end()
	}
	if n := len(in.GetMsg()); n > dns.MaxMsgSize || s.TooLong(n) {
		s.Limited("query_bytes")
		return nil, status.Errorf(codes.ResourceExhausted, "dns message exceeds size limit: %d", n)
	}
	w, err := writerFor(ctx, s)
	if err != nil {
		return nil, err
	}
	if w.conn != nil {
		// Of replies that are compressed, unread could not tell when they are sent. Only a program that links a
		// compressor has any.
		grpc.SetSendCompressor(ctx, encoding.Identity)
		w.conn.Begin(s)
		defer w.conn.End(s)
	}
	err = exec.Serve(ctx, s, w, in.GetMsg())
	var msg []byte
	if kept := w.msg.Load(); kept != nil { // a plugin may go on writing, which is too late
		msg = *kept
	}
	switch {
	case msg != nil && w.conn != nil && !w.conn.Hand(s, len(msg)):
		s.Limited("in_flight_bytes")
		return nil, status.Error(codes.ResourceExhausted, unsent.Err.Error())
	case msg != nil:
		return &pb.DnsPacket{Msg: msg}, nil
	// RESOURCE_EXHAUSTED is for the client to try again; INVALID_ARGUMENT is not.
	case errors.Is(err, exec.ErrCrowded):
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	case err != nil:
		return nil, status.Errorf(codes.InvalidArgument, "unpacking a query: %v", err)
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return nil, status.Error(codes.Unavailable, "the query was dropped")
}

// writer keeps the reply for the call's result, as a call has one. Of several messages, such as those of a
// transfer, the last one is the result.
type writer struct {
	reply.Writer
	conn *admittedConn // nil if the call came without a socket of ours
	msg  atomic.Pointer[[]byte]
}

// writerFor is the writer for a call.
func writerFor(ctx context.Context, s *service.Service) (*writer, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, status.Error(codes.Internal, "no peer in gRPC context")
	}
	w := new(writer)
	remote, ok := p.Addr.(*net.TCPAddr)
	if a, ours := p.Addr.(*admittedAddr); ours {
		remote, w.conn, ok = a.TCPAddr, a.conn, true
	}
	if !ok {
		return nil, status.Errorf(codes.Internal, "no TCP peer in gRPC context: %v", p.Addr)
	}
	w.Writer = reply.Writer{Sink: sink{w}, Finish: s.Finish}
	w.Client = reply.Client{Network: "tcp", Remote: remote, Local: p.LocalAddr, Limit: dns.MaxMsgSize}
	// Handlers expect an address.
	if w.Local == nil {
		w.Local = &net.TCPAddr{}
	}
	if t, ok := p.AuthInfo.(credentials.TLSInfo); ok {
		w.TLS = &t.State
	}
	return w, nil
}

// sink keeps what is sent for the call's result.
type sink struct{ w *writer }

// Send implements reply.Sink.
func (s sink) Send(b []byte) error {
	b = bytes.Clone(b)
	s.w.msg.Store(&b)
	return nil
}

// Close and Hijack do nothing: the connection is not the query's.
func (sink) Close() error { return nil }
func (sink) Hijack()      {}
