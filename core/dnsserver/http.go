package dnsserver

import (
	"context"
	"errors"
	golog "log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/prometheus/client_golang/prometheus"
)

// This file is what DNS over HTTP is, in each version of HTTP (RFC 8484).

// httpAnswer is a response. Its body is a packed reply if the status is 200, else text.
type httpAnswer struct {
	status int
	body   []byte
	noBody bool // the client gets the length of body only
}

func httpText(status int, text string) httpAnswer {
	return httpAnswer{status: status, body: []byte(text + "\n")}
}

func httpReply(b []byte) httpAnswer { return httpAnswer{status: http.StatusOK, body: b} }

// Responses that are no reply.
var (
	httpNotFound = httpText(http.StatusNotFound, "")
	httpBad      = httpText(http.StatusBadRequest, "invalid request")
	httpTooLong  = httpText(http.StatusRequestHeaderFieldsTooLarge, "request header is too long")
	httpNoReply  = httpText(http.StatusInternalServerError, "No response")
	httpCrowded  = httpText(http.StatusServiceUnavailable, "too many queries")
)

const (
	plainText     = "text/plain; charset=utf-8"
	errHTTPPacket = "DoH request could not be parsed: %s"
)

// validator is the function that decides whether an HTTP request is one for us: the last of the group; nil stands
// for: if its path is /dns-query.
func validator(group []*Config) (valid func(*http.Request) bool) {
	for _, cfg := range group {
		if cfg.HTTPRequestValidateFunc != nil {
			valid = cfg.HTTPRequestValidateFunc
		}
	}
	return valid
}

// busyConn is a connection that wants to know when it has a query at work.
type busyConn interface {
	begin()
	end()
}

// busyConnKey holds the busyConn of a request's connection.
type busyConnKey struct{}

// serveHTTP answers a request of net/http or http3.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request, valid func(*http.Request) bool, dw *DoHWriter, count *prometheus.CounterVec) {
	a := s.answerHTTP(r, valid, dw)
	h := w.Header()
	if a.status == http.StatusOK {
		h.Set("Content-Type", doh.MimeType)
		h.Set("Cache-Control", "max-age="+strconv.Itoa(maxAge(a.body, time.Now())))
	} else {
		h.Set("Content-Type", plainText)
		h.Set("X-Content-Type-Options", "nosniff")
	}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	count.WithLabelValues(s.Addr, strconv.Itoa(a.status)).Inc()
	if !inFlight.take(len(a.body)) {
		s.limited("in_flight_bytes")
		panic(http.ErrAbortHandler) // ends the stream, or the connection
	}
	defer inFlight.give(len(a.body))
	if r.ProtoMajor == 3 { // net/http limits the time by itself
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.WriteTimeout))
	}
	w.WriteHeader(a.status)
	w.Write(a.body)
}

func (s *Server) answerHTTP(r *http.Request, valid func(*http.Request) bool, dw *DoHWriter) httpAnswer {
	if s.longHeader(r) {
		s.limited("header_bytes")
		return httpTooLong
	}
	if valid == nil && r.URL.Path != doh.Path || valid != nil && !valid(r) {
		return httpNotFound
	}
	packet, err := doh.Packet(r)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.limited("read_time")
	}
	if err == nil && s.tooLong(len(packet)) {
		s.limited("query_bytes")
		err = errLongQuery
	}
	if err != nil {
		log.Debugf(errHTTPPacket, err)
		return httpBad
	}
	if c, ok := r.Context().Value(busyConnKey{}).(busyConn); ok {
		c.begin()
		defer c.end()
	}
	ctx := context.WithValue(r.Context(), HTTPRequestKey{}, r)
	return dw.answer(s.serveBytes(ctx, dw, packet))
}

// answer is the response to a query that was served with the error given.
func (d *DoHWriter) answer(err error) httpAnswer {
	if err == errCrowded {
		return httpCrowded
	}
	if err != nil {
		log.Debugf(errHTTPPacket, err)
		return httpBad
	}
	body := d.packed
	if body == nil && d.Msg != nil {
		if body, err = d.pack(d.Msg); err != nil {
			return httpText(http.StatusInternalServerError, err.Error())
		}
	}
	if body == nil {
		return httpNoReply
	}
	return httpReply(body)
}

// longHeader reports whether the header of a request is longer than the limit.
func (s *Server) longHeader(r *http.Request) bool {
	n := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + headerFieldSpace
		}
	}
	return s.limits.headerBytes > 0 && n > s.limits.headerBytes
}

// headerFieldSpace is what a header field counts beside its name and value (RFC 9113 §6.5.2).
const headerFieldSpace = 32

// tooLong reports whether a query of n octets, which did not come over UDP, is longer than the limit.
func (s *Server) tooLong(n int) bool { return s.limits.queryBytes > 0 && n > s.limits.queryBytes }

// headerRoom is the limit that net/http and http3 are told: one beyond ours, as they do not count what they refuse.
func (s *Server) headerRoom() int { return 2 * max(s.limits.headerBytes, DefaultHTTPSMaxHeaderBytes) }

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

// debugLog is where net/http puts what it has to say: the log, at debug level.
func debugLog() *golog.Logger { return golog.New(debugWriter{}, "", 0) }

type debugWriter struct{}

func (debugWriter) Write(p []byte) (int, error) {
	log.Debug(strings.TrimSpace(string(p)))
	return len(p), nil
}

// unpackRequest reads a query that a transport could not serve in the wire lane.
var unpackRequest = dnsutil.UnpackRequest
