package dnsserver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/prometheus/client_golang/prometheus"
)

// ServerHTTPS serves DNS over HTTP/1.1 and HTTP/2 (RFC 8484).
type ServerHTTPS struct {
	*Server
	httpsServer *http.Server // for HTTP/1.1
	tlsConfig   *tls.Config
	valid       func(*http.Request) bool // nil: if the path is /dns-query
	good        prometheus.Counter       // responses with status 200
}

// NewServerHTTPS is a ServerHTTPS for the blocks of group, at addr (https://:443). It opens no socket.
func NewServerHTTPS(addr string, group []*Config) (*ServerHTTPS, error) {
	s, err := NewServer(addr, group)
	if err != nil {
		return nil, err
	}
	sh := &ServerHTTPS{
		Server: s, tlsConfig: tlsConfigOf(group, "h2", "http/1.1"), valid: validator(group),
		good: vars.HTTPSResponsesCount.WithLabelValues(s.Addr, strconv.Itoa(http.StatusOK)),
	}
	if sh.tlsConfig != nil {
		sh.tlsConfig.DynamicRecordSizingDisabled = true
	}
	sh.httpsServer = &http.Server{
		Handler:        sh,
		ReadTimeout:    s.ReadTimeout,
		WriteTimeout:   s.WriteTimeout,
		IdleTimeout:    s.IdleTimeout,
		MaxHeaderBytes: s.headerRoom(),
		ErrorLog:       debugLog(),
		ConnContext:    withEndpoint,
	}
	return sh, nil
}

// Listen opens the TCP socket.
func (s *ServerHTTPS) Listen() (net.Listener, error) {
	return reuseport.Listen("tcp", strings.TrimPrefix(s.Addr, transport.HTTPS+"://"))
}

// ListenPacket opens nothing: there is no UDP here.
func (s *ServerHTTPS) ListenPacket() (net.PacketConn, error) { return nil, nil }

// ServePacket does nothing: there is no UDP here.
func (s *ServerHTTPS) ServePacket(net.PacketConn) error { return nil }

// Serve serves requests that come on connections of l until the server is stopped.
func (s *ServerHTTPS) Serve(l net.Listener) error {
	if s.tlsConfig == nil {
		s.warnPlain()
	}
	first := &handedConns{addr: l.Addr(), conns: make(chan net.Conn), closed: make(chan struct{})}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer first.Close()
	if !s.start(httpStopper{s.httpsServer}) {
		return l.Close()
	}
	wg.Go(func() { s.httpsServer.Serve(first) })
	return s.serveStream(s.wrapListener(l), func(t *streamTransport, conn net.Conn) transportConn {
		c := &httpsConn{server: s, http1: first}
		c.open(t, conn, s.tlsConfig, func() {})
		return c
	})
}

// httpStopper ends what net/http serves.
type httpStopper struct{ *http.Server }

func (h httpStopper) stop(ctx context.Context) error {
	err := h.Shutdown(ctx)
	if err != nil {
		h.Close()
	}
	return err
}

// Shutdown stops the server. See Server.Stop.
func (s *ServerHTTPS) Shutdown() error { return s.Stop() }

// ServeHTTP answers one request.
func (s *ServerHTTPS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	remote := net.Addr(&net.TCPAddr{})
	if a, err := net.ResolveTCPAddr("tcp", r.RemoteAddr); err == nil {
		remote = a
	}
	s.serveHTTP(w, r, s.valid, &DoHWriter{server: s.Server, laddr: s.localAddr(r), raddr: remote, request: r}, vars.HTTPSResponsesCount)
}

// httpsConn is a connection of DNS over HTTP: TLS tells which version of HTTP is spoken on it.
type httpsConn struct {
	endpoint
	server *ServerHTTPS
	http1  *handedConns
	http2  atomic.Pointer[h2Conn] // once that is known
	chosen atomic.Bool            // HTTP/1.1
}

func (c *httpsConn) serve() {
	defer c.conn.Close()
	if !c.handshake() {
		return
	}
	if c.state != nil && c.state.NegotiatedProtocol == "h2" {
		h2 := newH2Conn(c.server, &c.endpoint)
		c.http2.Store(h2)
		h2.serve()
		c.closeTLS()
		return
	}
	c.chosen.Store(true)
	ended := make(chan struct{})
	c.low.closed = sync.OnceFunc(func() { close(ended) })
	if c.http1.give(c.upper) {
		<-ended
	}
}

// hurry does nothing for HTTP/1.1: net/http ends such connections by itself.
func (c *httpsConn) hurry() {
	if h2 := c.http2.Load(); h2 != nil {
		h2.hurry()
	} else if !c.chosen.Load() {
		c.conn.SetReadDeadline(time.Now().Add(drainTime))
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

func (h *handedConns) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

func (h *handedConns) Addr() net.Addr { return h.addr }

func withEndpoint(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if low, ok := c.(*gatherConn); ok {
		return context.WithValue(ctx, busyConnKey{}, low.owner)
	}
	return ctx
}
