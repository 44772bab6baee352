package grpcdns

import (
	"context"
	"net"
	"sync/atomic"

	ot "github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/ext"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/service"
)

// admissionListener keeps the connections within limits that another one's server serves.
type admissionListener struct {
	net.Listener
	admission *conn.Admission
	coming    *atomic.Int32 // see Transport
}

// Accept is a connection that was let in. Those that are refused are closed; it waits on.
func (l *admissionListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &admittedConn{Conn: nc, coming: l.coming}
		c.last.Store(service.Now())
		c.coming.Add(1)
		if t := l.admission.Enter(conn.Peer(nc), c, conn.Forever); t != nil {
			c.slot = t
			return c, nil
		}
		c.come()
		nc.Close()
	}
}

// admittedConn is a connection that was let in.
type admittedConn struct {
	net.Conn
	slot     *conn.Slot
	inflight service.Inflight
	last     atomic.Int64 // when it had a query; see conn.Evictable
	unread   unread
	frames   atomic.Pointer[frames] // nil before the handshake is over
	coming   *atomic.Int32          // of its Transport, until it has come
	came     atomic.Bool
	began    atomic.Int64 // when its client began to connect; see handshake.go
	told     atomic.Int64 // when it was told that the server stops
}

// IdleSince implements conn.Evictable.
func (c *admittedConn) IdleSince() (int64, bool) { return c.last.Load(), !c.inflight.Busy() }

// Owed has EvictIdle wait for a client that takes its replies, only connects, or does not know that it is to go.
func (c *admittedConn) Owed() bool { return c.unread.owed() || c.arrives() || c.learns() }

// Begin counts a query of the connection, until End.
func (c *admittedConn) Begin(*service.Service) {
	c.inflight.Add()
	if c.began.Load() != called {
		c.began.Store(called)
	}
}

// End ends what Begin began; the connection may be idle from now on.
func (c *admittedConn) End(*service.Service) {
	c.last.Store(service.Now())
	c.inflight.Done()
}

// Hand says that the library gets a reply of n octets to send. It reports false if the process holds too many that
// clients do not read.
func (c *admittedConn) Hand(s *service.Service, n int) bool {
	return c.unread.hand(s, n, func() { c.Evict(true) })
}

// Write notes what the client takes.
func (c *admittedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.unread.took(n)
	return n, err
}

// Close gives the place back, too. It may be called more than once.
func (c *admittedConn) Close() error {
	c.come()
	c.unread.end()
	c.slot.Leave()
	return c.Conn.Close()
}

// RemoteAddr tells the connection, too, to who knows: the library hands nothing else of it to a call.
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

// joinSpan makes a call part of the trace that its client has begun, if it has. It is there only if a block has the
// plugin trace.
func (t *Transport) joinSpan(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	tracer := t.Now().Proto.(*Settings).Tracer
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
