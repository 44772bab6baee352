package dnsserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/pires/go-proxyproto"
)

// Listen opens the TCP socket.
func (s *Server) Listen() (net.Listener, error) {
	return reuseport.Listen("tcp", strings.TrimPrefix(s.Addr, transport.DNS+"://"))
}

// WrapListener leaves the listener as it is: what wraps connections is put on when serving
// begins, so that it holds for sockets that a reload takes over, too.
func (s *Server) WrapListener(ln net.Listener) net.Listener { return ln }

// Serve serves queries that come on connections of l until the server is stopped; then it closes l.
func (s *Server) Serve(l net.Listener) error { return s.serveStream(s.wrapListener(l)) }

// wrapListener makes l understand the PROXY protocol, if a block wants it.
func (s *Server) wrapListener(l net.Listener) net.Listener {
	for _, cfg := range s.configs {
		if cfg.ProxyProtoConnPolicy != nil {
			return &proxyproto.Listener{Listener: l, ConnPolicy: cfg.ProxyProtoConnPolicy, ReadHeaderTimeout: s.ReadTimeout}
		}
	}
	return l
}

// streamTransport serves DNS over TCP or TLS (RFC 1035 §4.2.2, RFC 7766, RFC 7858): one
// reader for each connection, its queries at once on the workers of the process, replies in any order.
type streamTransport struct {
	server   *Server
	listener net.Listener
	slots    chan struct{} // one for each open connection

	stopping atomic.Bool
	mu       sync.Mutex
	conns    map[*streamConn]struct{}
	until    time.Time      // when stopping: how long queries are taken from connections that are open
	done     sync.WaitGroup // who accepts, and connections
}

func (s *Server) serveStream(l net.Listener) error {
	t := &streamTransport{server: s, listener: l, slots: make(chan struct{}, MaxStreamConnections), conns: map[*streamConn]struct{}{}}
	t.done.Add(1)
	if !s.start(t) {
		return l.Close()
	}
	return t.accept()
}

func (t *streamTransport) accept() error {
	defer t.done.Done()
	for {
		t.slots <- struct{}{} // beyond the bound, clients wait in the backlog
		conn, err := t.listener.Accept()
		if err != nil {
			<-t.slots
			if errors.Is(err, net.ErrClosed) || t.stopping.Load() {
				return nil
			}
			time.Sleep(acceptErrorPause) // such as no file descriptors: it may pass
			continue
		}
		c := &streamConn{transport: t, conn: conn, slots: make(chan struct{}, DefaultStreamQueries)}
		c.out.conn, c.out.timeout = conn, t.server.WriteTimeout
		c.peer = wire.PeerOf(conn.RemoteAddr(), conn.LocalAddr())
		c.peer.Proto, c.peer.Limit = wire.TCP, wire.MaxMessage
		t.enter(c)
		go c.serve()
	}
}

const (
	acceptErrorPause = 5 * time.Millisecond
	// takeTime is how long a client that goes on asking is answered by a server that is being stopped.
	takeTime = 3 * time.Second
)

func (t *streamTransport) enter(c *streamConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns[c] = struct{}{}
	t.done.Add(1)
}

func (t *streamTransport) leave(c *streamConn) {
	t.mu.Lock()
	delete(t.conns, c)
	t.mu.Unlock()
	<-t.slots
	t.done.Done()
}

// stop closes the listener, and each connection when its queries are answered and no more come. A connection that the
// listener gave away last is served, too.
func (t *streamTransport) stop(ctx context.Context) error {
	t.mu.Lock()
	t.until = time.Now().Add(takeTime)
	t.stopping.Store(true)
	for c := range t.conns {
		c.conn.SetReadDeadline(time.Now().Add(drainTime)) // what has come until then is still served
	}
	t.mu.Unlock()
	t.listener.Close()

	ended := make(chan struct{})
	go func() { t.done.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		for c := range t.conns {
			c.conn.Close()
		}
		return ctx.Err()
	}
}

// streamConn is one connection. Its reader reads a query only when fewer than
// DefaultStreamQueries of its queries are waiting.
type streamConn struct {
	transport *streamTransport
	conn      net.Conn
	peer      wire.Peer
	tls       *tls.ConnectionState
	out       frameWriter
	slots     chan struct{}
	inflight  inflight
	hijacked  atomic.Bool
}

func (c *streamConn) serve() {
	defer c.transport.leave(c)
	if state, ok := c.handshake(); ok {
		c.tls = state
		c.read()
		<-c.inflight.drained()
	}
	if !c.hijacked.Load() {
		c.finish()
	}
}

// read serves queries until no more come. All that has come is served before replies are written, in one piece.
func (c *streamConn) read() {
	s := c.transport.server
	r := bufio.NewReaderSize(c.conn, readSpace)
	bytes := s.usesWire()
	for n := 0; (s.MaxTCPQueries < 0 || n < s.MaxTCPQueries) && !c.hijacked.Load(); {
		packet, err := c.next(r, n == 0)
		if err != nil {
			break
		}
		n++
		if !bytes || !c.answer(r, packet, &n) {
			c.wait(packet, nil, wire.Unpack)
		}
		if !hasFrame(r) {
			c.out.flush()
			log.Idle()
		}
	}
	c.out.flush()
}

const readSpace = 4096

// answer serves packet, and what else has come, as far as it need not wait. It reports false if packet is not one for the wire lane.
// n counts the queries.
func (c *streamConn) answer(r *bufio.Reader, packet []byte, n *int) bool {
	s := c.transport.server
	run := runs.Get().(*run)
	defer runs.Put(run)
	peer := c.peer
	peer.Arrival = time.Now()
	lane := enterLane()
	for {
		reply, out := run.serve(s, packet, peer, lane, nil)
		if reply != nil {
			c.out.add(reply)
		}
		more := out == wire.Done && *n != s.MaxTCPQueries && hasFrame(r)
		if !more {
			lane.Done(time.Since(peer.Arrival))
			lane.Leave()
			if out != wire.Done {
				c.wait(packet, &run.query, out)
			}
			return true
		}
		packet = frame(r)
		*n++
	}
}

// wait lets a query wait, without holding up those behind it, unless too many wait already.
func (c *streamConn) wait(packet []byte, q *wire.Query, out wire.Outcome) {
	select {
	case c.slots <- struct{}{}:
	default:
		c.out.flush()
		c.slots <- struct{}{}
	}
	laterOn(c, packet, q, out)
}

func (c *streamConn) base() *Server { return c.transport.server }
func (c *streamConn) begin()        { c.inflight.add() }

func (c *streamConn) end() {
	<-c.slots
	c.inflight.done()
}

func (c *streamConn) responder() *responder {
	return &responder{
		out: c, network: "tcp", remote: c.conn.RemoteAddr(), local: c.conn.LocalAddr(),
		limit: 65535, tls: c.tls, secrets: c.transport.server.tsigSecret,
	}
}

// hasFrame reports whether a message has come whole.
func hasFrame(r *bufio.Reader) bool {
	if r.Buffered() < 2 {
		return false
	}
	head, _ := r.Peek(2)
	return r.Buffered() >= 2+int(binary.BigEndian.Uint16(head))
}

// frame is the message that has come whole. It is good until the next read.
func frame(r *bufio.Reader) []byte {
	head, _ := r.Peek(2)
	n := 2 + int(binary.BigEndian.Uint16(head))
	b, _ := r.Peek(n)
	r.Discard(n)
	return b[2:]
}

// handshake completes TLS, where there is TLS.
func (c *streamConn) handshake() (*tls.ConnectionState, bool) {
	t, ok := c.conn.(*tls.Conn)
	if !ok {
		return nil, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.transport.server.ReadTimeout)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, false
	}
	state := t.ConnectionState()
	return &state, true
}

// next is the next query; it is good until the next read. A connection is not idle while a query of it is at work.
func (c *streamConn) next(r *bufio.Reader, first bool) ([]byte, error) {
	timeout := c.transport.server.IdleTimeout
	if first {
		timeout = c.transport.server.ReadTimeout
	}
	for !hasFrame(r) {
		c.setReadDeadline(timeout)
		head, err := r.Peek(2)
		if err == nil {
			n := 2 + int(binary.BigEndian.Uint16(head))
			if n > readSpace {
				packet := make([]byte, n)
				_, err = io.ReadFull(r, packet)
				return packet[2:], err
			}
			if _, err = r.Peek(n); err != nil {
				return nil, err
			}
			break
		}
		var nerr net.Error
		if len(head) > 0 || !errors.As(err, &nerr) || !nerr.Timeout() || !c.inflight.busy() || c.transport.stopping.Load() {
			return nil, err
		}
	}
	return frame(r), nil
}

// setReadDeadline gives the client time for its next query: as long as it may be idle, or while the server is being
// stopped, as long as the query may have been on its way.
func (c *streamConn) setReadDeadline(timeout time.Duration) {
	t := c.transport
	now := time.Now()
	if !t.stopping.Load() {
		c.conn.SetReadDeadline(now.Add(timeout))
		if !t.stopping.Load() {
			return // else stop may have set its deadline before us
		}
	}
	if now.Before(t.until) {
		c.conn.SetReadDeadline(now.Add(drainTime))
	}
}

// finish closes the connection. The client may have sent another query just now: if that were left unread, the system
// would reset the connection, and with it replies that are on their way.
func (c *streamConn) finish() {
	if tcp, ok := c.conn.(*net.TCPConn); ok && c.transport.stopping.Load() {
		tcp.CloseWrite()
		tcp.SetReadDeadline(time.Now().Add(drainTime))
		io.Copy(io.Discard, io.LimitReader(tcp, 1<<16))
	}
	c.conn.Close()
}

func (c *streamConn) send(b []byte) error { return c.out.write(b) }
func (c *streamConn) Close() error        { return c.conn.Close() }
func (c *streamConn) Hijack()             { c.hijacked.Store(true) }

// frameWriter writes messages with their length before them. Messages that come while one is
// being written go out together in the next write.
type frameWriter struct {
	conn    net.Conn
	timeout time.Duration

	mu      sync.Mutex
	pending []byte // to be written
	spare   []byte // the buffer that was written last
	writing bool
	err     error // of a write; nothing more is written after it
}

// write writes a message, and all that has been added.
func (w *frameWriter) write(b []byte) error {
	if err := w.add(b); err != nil {
		return err
	}
	return w.flush()
}

// add puts a message behind those that are to be written.
func (w *frameWriter) add(b []byte) error {
	if len(b) > 65535 {
		return errors.New("message is longer than 65535 octets")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = binary.BigEndian.AppendUint16(w.pending, uint16(len(b)))
	w.pending = append(w.pending, b...)
	return w.err
}

// flush writes what has been added, unless somebody is writing: he takes it along.
func (w *frameWriter) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing {
		return w.err
	}
	w.writing = true
	for len(w.pending) > 0 && w.err == nil {
		out := w.pending
		w.pending = w.spare[:0]
		w.mu.Unlock()
		w.conn.SetWriteDeadline(time.Now().Add(w.timeout))
		_, err := w.conn.Write(out)
		w.mu.Lock()
		w.err = err
		w.spare = out[:0]
	}
	w.writing = false
	return w.err
}
