package dnsserver

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// Listen opens the TCP socket.
func (s *Server) Listen() (net.Listener, error) {
	return reuseport.Listen("tcp", strings.TrimPrefix(s.Addr, transport.DNS+"://"))
}

// WrapListener leaves the listener as it is: what wraps connections is put on when serving
// begins, so that it holds for sockets that a reload takes over, too.
func (s *Server) WrapListener(ln net.Listener) net.Listener { return ln }

// Serve serves queries that come on connections of l until the server is stopped; then it closes l.
func (s *Server) Serve(l net.Listener) error { return s.serveStream(s.wrapListener(l), nil) }

// connKind makes what serves the connections of one listener.
type connKind func(t *streamTransport, conn net.Conn) transportConn

// transportConn is a connection of a streamTransport.
type transportConn interface {
	admitted
	// admit tells the connection its place among those of the listener.
	admit(*ticket)
	// serve serves the connection until it ends, and closes it.
	serve()
	// hurry is called when the server stops: the connection takes what has come until then, and ends.
	hurry()
	// cut closes the connection at once. Any goroutine may call it.
	cut()
}

// streamTransport serves the connections of one TCP listener, each on a goroutine of its own.
type streamTransport struct {
	server    *Server
	listener  net.Listener
	make      connKind
	admission *admission

	stopping atomic.Bool
	mu       sync.Mutex
	conns    map[transportConn]struct{}
	until    time.Time      // when stopping: how long queries are taken from connections that are open
	done     sync.WaitGroup // who accepts, and connections
}

// serveStream serves the connections of l. kind says how; nil stands for DNS over TCP.
func (s *Server) serveStream(l net.Listener, kind connKind) error {
	if kind == nil {
		kind = newPlainConn
	}
	t := &streamTransport{server: s, listener: l, make: kind, admission: newAdmission(s), conns: map[transportConn]struct{}{}}
	t.done.Add(1)
	if !s.start(t) {
		return l.Close()
	}
	return t.accept()
}

func (t *streamTransport) accept() error {
	defer t.done.Done()
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || t.stopping.Load() {
				return nil
			}
			time.Sleep(acceptErrorPause) // such as no file descriptors: it may pass
			continue
		}
		c := t.make(t, conn)
		ticket := t.admission.enter(peerOf(conn), c, true) // meanwhile others wait in the backlog
		if ticket == nil {
			c.cut()
			continue
		}
		t.enter(c)
		c.admit(ticket)
		go func() {
			defer t.leave(c, ticket)
			c.serve()
		}()
	}
}

const (
	acceptErrorPause = 5 * time.Millisecond
	// takeTime is how long a client that goes on asking is answered by a server that is being stopped.
	takeTime = 3 * time.Second
)

func (t *streamTransport) enter(c transportConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns[c] = struct{}{}
	t.done.Add(1)
}

func (t *streamTransport) leave(c transportConn, ticket *ticket) {
	ticket.leave()
	t.mu.Lock()
	delete(t.conns, c)
	t.mu.Unlock()
	t.done.Done()
}

// stop closes the listener, and each connection when its queries are answered and no more come. A connection that the
// listener gave away last is served, too.
func (t *streamTransport) stop(ctx context.Context) error {
	t.mu.Lock()
	t.until = time.Now().Add(takeTime)
	t.stopping.Store(true)
	for c := range t.conns {
		c.hurry()
	}
	t.mu.Unlock()
	t.admission.close()
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
			c.cut()
		}
		return ctx.Err()
	}
}
