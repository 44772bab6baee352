package dnsserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	golog "log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
)

// ServerHTTPS serves DNS over HTTP/1.1 and HTTP/2 (RFC 8484).
type ServerHTTPS struct {
	*Server
	httpsServer *http.Server
	tlsConfig   *tls.Config
	valid       func(*http.Request) bool
	maxConns    int
}

// NewServerHTTPS is a ServerHTTPS for the blocks of group, at addr (https://:443). It opens no socket.
func NewServerHTTPS(addr string, group []*Config) (*ServerHTTPS, error) {
	s, err := NewServer(addr, group)
	if err != nil {
		return nil, err
	}
	sh := &ServerHTTPS{
		Server:    s,
		tlsConfig: tlsConfigOf(group, "h2", "http/1.1"),
		valid:     validator(group),
		maxConns:  orDefault(firstSet(group, func(c *Config) *int { return c.MaxHTTPSConnections }), DefaultHTTPSMaxConnections),
	}
	sh.httpsServer = &http.Server{
		Handler:      sh,
		ReadTimeout:  s.ReadTimeout,
		WriteTimeout: s.WriteTimeout,
		IdleTimeout:  s.IdleTimeout,
		ErrorLog:     golog.New(debugWriter{}, "", 0),
	}
	return sh, nil
}

// debugWriter logs what net/http has to say at debug level.
type debugWriter struct{}

func (debugWriter) Write(p []byte) (int, error) {
	log.Debug(strings.TrimSpace(string(p)))
	return len(p), nil
}

// validator is the function that decides whether an HTTP request is one for us: the last of the group, or
// else whether its path is /dns-query.
func validator(group []*Config) func(*http.Request) bool {
	valid := func(r *http.Request) bool { return r.URL.Path == doh.Path }
	for _, cfg := range group {
		if cfg.HTTPRequestValidateFunc != nil {
			valid = cfg.HTTPRequestValidateFunc
		}
	}
	return valid
}

// firstSet is the first limit that a block of the group sets, nil if none does. It warns
// of blocks that set another one.
func firstSet(group []*Config, get func(*Config) *int) (first *int) {
	for _, cfg := range group {
		p := get(cfg)
		switch {
		case p == nil:
		case first == nil:
			first = p
		case *first != *p:
			log.Warningf("server blocks that share a listener set different limits, %d and %d: using %d", *first, *p, *first)
		}
	}
	return first
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
	l = s.wrapListener(l)
	if s.maxConns > 0 {
		l = netutil.LimitListener(l, s.maxConns)
	}
	if s.tlsConfig == nil {
		s.warnPlain()
	} else {
		l = tls.NewListener(l, s.tlsConfig)
	}
	if !s.start(httpStopper{s.httpsServer}) {
		return l.Close()
	}
	if err := s.httpsServer.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops the server. See Server.Stop.
func (s *ServerHTTPS) Shutdown() error { return s.Stop() }

type httpStopper struct{ *http.Server }

func (h httpStopper) stop(ctx context.Context) error {
	err := h.Shutdown(ctx)
	if err != nil {
		h.Close()
	}
	return err
}

// ServeHTTP answers one request.
func (s *ServerHTTPS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	remote := net.Addr(&net.TCPAddr{})
	if a, err := net.ResolveTCPAddr("tcp", r.RemoteAddr); err == nil {
		remote = a
	}
	s.serveHTTP(w, r, s.valid, &DoHWriter{laddr: s.localAddr(r), raddr: remote, request: r}, vars.HTTPSResponsesCount)
}

// localAddr is the address that a request was sent to.
func (s *Server) localAddr(r *http.Request) net.Addr {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return a
	}
	_, hostport, _ := strings.Cut(s.Addr, "://")
	if a, err := net.ResolveTCPAddr("tcp", hostport); err == nil {
		return a
	}
	return &net.TCPAddr{}
}

// serveHTTP is what DoH and DoH3 do with a request (RFC 8484 §4).
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request, valid func(*http.Request) bool, dw *DoHWriter, count *prometheus.CounterVec) {
	status := s.answerHTTP(w, r, valid, dw)
	count.WithLabelValues(s.Addr, strconv.Itoa(status)).Inc()
}

func (s *Server) answerHTTP(w http.ResponseWriter, r *http.Request, valid func(*http.Request) bool, dw *DoHWriter) (status int) {
	if !valid(r) {
		http.Error(w, "", http.StatusNotFound)
		return http.StatusNotFound
	}
	msg, err := doh.RequestToMsg(r)
	if err != nil {
		log.Debugf("DoH request could not be parsed: %s", err)
		http.Error(w, "invalid request", http.StatusBadRequest)
		return http.StatusBadRequest
	}
	s.ServeDNS(context.WithValue(r.Context(), HTTPRequestKey{}, r), dw, msg)
	if dw.Msg == nil {
		http.Error(w, "No response", http.StatusInternalServerError)
		return http.StatusInternalServerError
	}
	body := dw.packed
	if body == nil {
		if body, err = dw.Msg.Pack(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return http.StatusInternalServerError
		}
	}
	kind, _ := response.Typify(dw.Msg, time.Now().UTC())
	h := w.Header()
	h.Set("Content-Type", doh.MimeType)
	h.Set("Cache-Control", fmt.Sprintf("max-age=%d", int(dnsutil.MinimalTTL(dw.Msg, kind).Seconds())))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	w.Write(body)
	return http.StatusOK
}
