package dnsserver

import (
	"context"
	"net"
	"sync/atomic"

	ot "github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/ext"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// admissionListener keeps the connections within limits that another one's server serves.
type admissionListener struct {
	net.Listener
	admission *admission
}

func (l *admissionListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &admittedConn{Conn: conn}
		c.last.Store(sinceStart())
		if t := l.admission.enter(peerOf(conn), c, true); t != nil {
			c.ticket = t
			return c, nil
		}
		conn.Close()
	}
}

// admittedConn is a connection that was let in.
type admittedConn struct {
	net.Conn
	ticket   *ticket
	inflight inflight
	last     atomic.Int64 // when it had a query; see admitted
}

func (c *admittedConn) idleSince() (int64, bool) { return c.last.Load(), !c.inflight.busy() }
func (c *admittedConn) evict()                   { c.Conn.Close() }

// begin counts a query of the connection, until end.
func (c *admittedConn) begin() { c.inflight.add() }

func (c *admittedConn) end() {
	c.last.Store(sinceStart())
	c.inflight.done()
}

func (c *admittedConn) Close() error {
	c.ticket.leave()
	return c.Conn.Close()
}

// RemoteAddr tells the connection, too, to who knows.
func (c *admittedConn) RemoteAddr() net.Addr {
	a, ok := c.Conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return c.Conn.RemoteAddr()
	}
	return &admittedAddr{a, c}
}

// admittedAddr is the client's address with its connection.
type admittedAddr struct {
	*net.TCPAddr
	conn *admittedConn
}

// joinSpan makes a call part of the trace that its client has begun, if it has.
func joinSpan(tracer ot.Tracer) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		parent, err := tracer.Extract(ot.HTTPHeaders, carrier(md))
		if err != nil || parent == nil {
			return handler(ctx, req)
		}
		span := tracer.StartSpan(info.FullMethod, ext.RPCServerOption(parent))
		defer span.Finish()
		out, err := handler(ot.ContextWithSpan(ctx, span), req)
		if err != nil {
			ext.LogError(span, err)
		}
		return out, err
	}
}

// carrier are the metadata of a call as tracers read them.
type carrier metadata.MD

// ForeachKey implements ot.TextMapReader.
func (c carrier) ForeachKey(f func(key, value string) error) error {
	for k, values := range c {
		for _, v := range values {
			if err := f(k, v); err != nil {
				return err
			}
		}
	}
	return nil
}
