package doh

import (
	"context"
	"net/http"
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
	http *http3.Server
}

// NewHTTP3 serves HTTP/3 on the connections of t; header and idle are told to the library once.
func NewHTTP3(t *quicconn.Transport, header int, idle time.Duration, configs *quicconn.Configs) *HTTP3 {
	h := &HTTP3{Transport: t}
	h.http = &http3.Server{
		Handler:         h,
		TLSConfig:       configs.TLS,
		QUICConfig:      configs.QUIC,
		EnableDatagrams: true,
		MaxHeaderBytes:  header,
		IdleTimeout:     idle,
		ConnContext:     h.withConn,
	}
	return h
}

// FitsHTTP reports whether the library may go on with what it was told: it cannot be told anything else while it has
// connections.
func (h *HTTP3) FitsHTTP(header int, idle time.Duration) bool {
	return h.http.MaxHeaderBytes == header && h.http.IdleTimeout == idle
}

// ServeConn serves one connection. One that comes when Stop has told all that it is over is closed at once.
func (h *HTTP3) ServeConn(c *quicconn.Conn) {
	h.http.ServeQUICConn(c.Conn)
	c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
}

// withConn puts the connection into the context of its requests.
func (h *HTTP3) withConn(ctx context.Context, c *quic.Conn) context.Context {
	if own := h.Find(c); own != nil {
		return context.WithValue(ctx, busyConnKey{}, own)
	}
	return ctx
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
	// Shutdown sends GOAWAY, and waits until all connections are gone; the transport closes them when their queries
	// are answered, which only it knows.
	told, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.http.Shutdown(told)
	}()
	err := h.Drain(ctx)
	cancel()
	<-done
	return err
}
