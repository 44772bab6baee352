package doh

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/service"
)

// HTTP1 serves connections of HTTP/1.1, with net/http. It belongs to a conn.Listener, which stops it.
type HTTP1 struct {
	HTTP1Settings
	server   *http.Server
	seat     *service.Seat
	conns    *handedConns
	done     chan struct{} // closed when net/http takes no more connections
	stopping atomic.Bool

	mu      sync.Mutex
	unasked map[net.Conn]struct{} // connections without a request so far; nil when they are closed
}

// HTTP1Settings is what net/http is told once.
type HTTP1Settings struct {
	Read, Write, Idle time.Duration
	Header            int // octets
}

// NewHTTP1 serves connections for the server at p; addr is that of its listener.
func NewHTTP1(settings HTTP1Settings, p *service.Seat, addr net.Addr) *HTTP1 {
	h := &HTTP1{
		HTTP1Settings: settings, seat: p, done: make(chan struct{}),
		conns:   &handedConns{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})},
		unasked: map[net.Conn]struct{}{},
	}
	h.server = &http.Server{
		Handler:        h,
		ReadTimeout:    settings.Read,
		WriteTimeout:   settings.Write,
		IdleTimeout:    settings.Idle,
		MaxHeaderBytes: settings.Header,
		ErrorLog:       debugLog(),
		// So that a request finds its connection, to say that that is busy.
		ConnContext: withConn,
		ConnState:   h.track,
	}
	go func() {
		defer close(h.done)
		h.server.Serve(h.conns)
	}()
	return h
}

// ServeHTTP answers a request.
func (h *HTTP1) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := h.seat.Enter()
	defer s.Inflight.Done()
	// net/http closes the connection behind this response.
	c, own := r.Context().Value(busyConnKey{}).(*conn.Conn)
	if h.stopping.Load() || own && c.Evicted() {
		w.Header().Set("Connection", "close")
	}
	// With its own reader net/http knows of what is left of a body, and gives the client time to see the response. It
	// closed at once behind "Expect: 100-continue" otherwise, and the rest met a reset. Nobody else may close it: of a
	// body that is closed and not its own, net/http thinks that it was read to its end, and takes the rest for a
	// request.
	r.Body = io.NopCloser(http.MaxBytesReader(w, r.Body, mostBody))
	if own {
		r.Body = body{r.Body, c}
	}
	Answer(s, w, r, false)
}

// body is that of a request, which the client may hold back until what came before it is acknowledged.
type body struct {
	io.ReadCloser
	conn *conn.Conn
}

func (b body) Read(p []byte) (int, error) {
	b.conn.QuickAcks(true)
	defer b.conn.QuickAcks(false)
	return b.ReadCloser.Read(p)
}

// mostBody is how many octets of a body are read: none of them is a message if there are more.
const mostBody = 64 << 10

// Stop waits until requests are answered, and closes the connections.
func (h *HTTP1) Stop(ctx context.Context) error {
	h.stopping.Store(true)
	select {
	case <-time.After(service.DrainTime): // a request may be on its way; it is told that it is the last one
	case <-ctx.Done():
	}
	h.closeUnasked()
	err := h.server.Shutdown(ctx)
	// Some took longer than there was time.
	if err != nil {
		h.server.Close()
	}
	h.conns.Close()
	<-h.done
	return err
}

// track is the ConnState of the server.
func (h *HTTP1) track(c net.Conn, state http.ConnState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(h.unasked, c)
	case h.unasked != nil:
		h.unasked[c] = struct{}{}
	default:
		go c.Close()
	}
}

// closeUnasked closes the connections that have had no request, now and later: net/http would leave them open for
// seconds while it shuts down, and drop the request of a client that has connected ahead of it.
func (h *HTTP1) closeUnasked() {
	h.mu.Lock()
	unasked := h.unasked
	h.unasked = nil
	h.mu.Unlock()
	for c := range unasked {
		c.Close()
	}
}

// handedConns is the listener from which net/http gets connections that somebody else has accepted.
type handedConns struct {
	addr   net.Addr
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

var errNoMoreConns = errors.New("no more connections are handed over")

// Accept waits for a connection that is handed over.
func (h *handedConns) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, errNoMoreConns
	}
}

// give hands a connection over. It reports false if nobody takes it any more.
func (h *handedConns) give(c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.closed:
		return false
	}
}

// Close ends Accept and give. The connections are not its own.
func (h *handedConns) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

func (h *handedConns) Addr() net.Addr { return h.addr }

// withConn puts the connection into the context of its requests.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if own := conn.Of(c); own != nil {
		return context.WithValue(ctx, busyConnKey{}, own)
	}
	return ctx
}
