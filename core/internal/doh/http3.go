package doh

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/quicconn"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// HTTP3Settings is what a Service of DNS over HTTP/3 has beside, as its Proto.
type HTTP3Settings struct {
	Settings
	quicconn.Configs
}

// HTTP3 serves the connections of a QUIC transport. It implements service.Heirloom.
type HTTP3 struct {
	*quicconn.Transport
	header int
	idle   time.Duration
	ending atomic.Bool // all clients are told that it is over
}

// NewHTTP3 serves HTTP/3 on the connections of t; header is told to the library, and idle is how long a connection may
// be without a request.
func NewHTTP3(t *quicconn.Transport, header int, idle time.Duration) *HTTP3 {
	return &HTTP3{Transport: t, header: header, idle: idle}
}

// FitsHTTP reports whether the connections that there are were told that.
func (h *HTTP3) FitsHTTP(header int, idle time.Duration) bool {
	return h.header == header && h.idle == idle
}

// ServeConn serves one connection. One that comes when Stop has told all that it is over is closed at once.
//
// A server of the library can only tell all of its clients to go. So each connection has one of its own.
func (h *HTTP3) ServeConn(c *quicconn.Conn) {
	defer c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
	i := newIdling(h.idle, func() { c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "idle timeout") })
	defer i.stop()
	s := &http3.Server{
		Handler: h, EnableDatagrams: true, MaxHeaderBytes: h.header,
		ConnContext: func(ctx context.Context, _ *quic.Conn) context.Context {
			return context.WithValue(context.WithValue(ctx, busyConnKey{}, c), idlingKey{}, i)
		},
	}
	// Shutdown sends GOAWAY, and waits until the client has gone; the transport closes the connection when its queries
	// are answered, which only it knows.
	c.OnLeave(func() { go s.Shutdown(c.Context()) })
	if !h.ending.Load() {
		s.ServeQUICConn(c.Conn)
	}
}

// ServeHTTP answers a request.
func (h *HTTP3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := h.Enter()
	defer s.Inflight.Done()
	if c, ok := r.Context().Value(busyConnKey{}).(*quicconn.Conn); ok {
		c.Open()
		defer c.Shut()
	}
	if i, ok := r.Context().Value(idlingKey{}).(*idling); ok {
		i.begin()
		defer i.end()
	}
	Answer(s, w, r, true)
}

// Stop serves what is on its way, tells clients to open no more streams, answers what is at work, and closes the
// connections.
func (h *HTTP3) Stop(ctx context.Context) error {
	h.Settle(ctx)
	h.ending.Store(true)
	h.Tell()
	return h.Drain(ctx)
}

// idlingKey holds the idling of a request's connection.
type idlingKey struct{}

// idling ends a connection that is without requests for a time. That is not left to the library, whose timer keeps a
// connection that its client has closed until the time is over: thousands, of who opens and closes hundreds a second.
type idling struct {
	after time.Duration // 0 for no end
	close func()

	mu    sync.Mutex
	open  int // requests
	timer *time.Timer
}

func newIdling(after time.Duration, close func()) *idling {
	i := &idling{after: after, close: close}
	if after > 0 {
		i.timer = time.AfterFunc(after, i.fire)
	}
	return i
}

// begin says that a request has come.
func (i *idling) begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.open++
	i.pause()
}

// end says that a request is answered.
func (i *idling) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.open--; i.open == 0 && i.timer != nil {
		i.timer.Reset(i.after)
	}
}

// stop ends it with the connection.
func (i *idling) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pause()
	i.timer = nil
}

func (i *idling) pause() {
	if i.timer != nil {
		i.timer.Stop()
	}
}

func (i *idling) fire() {
	i.mu.Lock()
	idle := i.open == 0
	i.mu.Unlock()
	if idle {
		i.close()
	}
}
