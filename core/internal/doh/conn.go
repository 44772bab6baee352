package doh

import (
	"crypto/tls"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/http2"
)

// Handler serves DNS over HTTP/1.1, with h, and HTTP/2. config is of TLS, nil without it.
func Handler(config *tls.Config, h *HTTP1) conn.Handler {
	return conn.Handler{TLS: config, New: func(c *conn.Conn) conn.Protocol { return &protocol{Conn: c, http1: h} }}
}

// protocol is a connection of DNS over HTTP: TLS tells which version of HTTP is spoken on it.
type protocol struct {
	*conn.Conn
	http1  *HTTP1
	http2  atomic.Pointer[http2.Conn] // once that is known
	chosen atomic.Bool                // HTTP/1.1
}

// Serve implements conn.Protocol.
func (p *protocol) Serve() {
	if p.TLS != nil && p.TLS.NegotiatedProtocol == "h2" {
		h2 := http2.New(p.Conn)
		p.http2.Store(h2)
		h2.Serve(newH2(h2))
		return
	}
	// net/http has goroutines of its own. This one waits, as the connection is the listener's until it ends.
	p.chosen.Store(true)
	if p.Evicted() { // Drain may have been before us
		p.giveWay()
	}
	ended := make(chan struct{})
	p.Closed(sync.OnceFunc(func() { close(ended) })) // without TLS net/http may close it twice
	if p.http1.conns.give(p.Upper) {
		<-ended
	}
}

// BeforeWait implements conn.Protocol.
func (p *protocol) BeforeWait() {
	if h2 := p.http2.Load(); h2 != nil {
		h2.BeforeWait()
	}
}

// Drain implements conn.Protocol. When the server stops, net/http ends connections of HTTP/1.1 by itself.
func (p *protocol) Drain() {
	if h2 := p.http2.Load(); h2 != nil {
		h2.Drain()
	} else if !p.chosen.Load() {
		p.DrainRead()
	} else if p.Evicted() {
		p.giveWay()
	}
}

// giveWay ends a connection of HTTP/1.1 that has given way. Its client can be told with a response only: so its next
// request is the last, if that comes in time.
func (p *protocol) giveWay() {
	time.AfterFunc(lastRequest, func() {
		if !p.Busy() {
			p.Abort()
		}
	})
}

// lastRequest is how long a connection that has given way is kept for a last request.
const lastRequest = time.Second
