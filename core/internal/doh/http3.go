package doh

import (
	"context"
	"net/http"
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

// NewHTTP3 serves HTTP/3 on the connections of t; header and idle are told to the library.
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
	s := &http3.Server{
		Handler: h, EnableDatagrams: true, MaxHeaderBytes: h.header, IdleTimeout: h.idle,
		ConnContext: func(ctx context.Context, _ *quic.Conn) context.Context {
			return context.WithValue(ctx, busyConnKey{}, c)
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
