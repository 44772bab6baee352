// Package doh is DNS over HTTP in each version of HTTP (RFC 8484): what a request asks, and what a response says.
//
//	HTTP/2   http2.Conn ──▶ h2.go ─────┐
//	HTTP/1.1 net/http ──▶ http1.go ────┼──▶ exec ──▶ Writer ──▶ answer: status, body, max-age
//	HTTP/3   quicconn ──▶ http3.go ────┘
//
// TLS tells which of the first two is spoken on a connection (conn.go). Start at Answer, which all but HTTP/2 go
// through; then h2.go.
package doh

import (
	"context"
	"errors"
	"io"
	golog "log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/quicconn"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/prometheus/client_golang/prometheus"
)

// Settings is what a Service of DNS over HTTP has beside, as its Proto.
type Settings struct {
	// Valid decides whether a request is one for us; nil stands for: if its path is /dns-query.
	Valid func(*http.Request) bool
	// Responses counts responses by server and status.
	Responses *prometheus.CounterVec
	// Good is the count of those with status 200.
	Good prometheus.Counter
}

// http is s, also for Settings of HTTP/3, which embed these.
func (s *Settings) http() *Settings { return s }

// settings are those of s.
func settings(s *service.Service) *Settings { return s.Proto.(interface{ http() *Settings }).http() }

// count counts a response. Nearly all have status 200, so their counter is looked up once.
func (s *Settings) count(label string, status int) {
	if status == http.StatusOK && s.Good != nil {
		s.Good.Inc()
		return
	}
	s.Responses.WithLabelValues(label, strconv.Itoa(status)).Inc()
}

// answer is a response. Its body is a packed reply if the status is 200, else text.
type answer struct {
	status int
	body   []byte
	noBody bool // the client gets the length of body only
}

// text is a response that says what is wrong, packed one with a reply. b is kept.
func text(status int, t string) answer { return answer{status: status, body: []byte(t + "\n")} }

func packed(b []byte) answer { return answer{status: http.StatusOK, body: b} }

// Responses that are no reply.
var (
	notFound = text(http.StatusNotFound, "")
	bad      = text(http.StatusBadRequest, "invalid request")
	tooLong  = text(http.StatusRequestHeaderFieldsTooLarge, "request header is too long")
	noReply  = text(http.StatusInternalServerError, "No response")
	crowded  = text(http.StatusServiceUnavailable, "too many queries")
)

const (
	plainText = "text/plain; charset=utf-8"
	errPacket = "DoH request could not be parsed: %s"
)

// RequestKey holds the *http.Request of a query that came over HTTP, in the query's context.
type RequestKey struct{}

// busyConn is a connection that wants to know when it has a query at work. The query's server knows.
type busyConn interface {
	Occupy()
	Vacate()
}

// busyConnKey holds the busyConn of a request's connection.
type busyConnKey struct{}

// Answer has s answer a request of net/http, or of http3 if it came over UDP.
func Answer(s *service.Service, w http.ResponseWriter, r *http.Request, udp bool) {
	remote := remoteAddr(r, udp)
	// Over HTTP/3 the library knows the address of the packets, which may be that of a proxy.
	c, quic := r.Context().Value(busyConnKey{}).(*quicconn.Conn)
	if quic {
		remote = c.Client()
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.Read)) // net/http limits the time by itself
	}
	a := respond(s, r, &Writer{service: s, laddr: localAddr(s, r), raddr: remote, request: r})
	h := w.Header()
	if a.status == http.StatusOK {
		h.Set("Content-Type", doh.MimeType)
		h.Set("Cache-Control", "max-age="+strconv.Itoa(maxAge(a.body, time.Now())))
	} else {
		h.Set("Content-Type", plainText)
		h.Set("X-Content-Type-Options", "nosniff")
	}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	settings(s).count(s.Label, a.status)
	// From here on the body waits for the client, whatever the library does with it. A connection of HTTP/1.1 has one
	// response at a time.
	hold, release := func(n int) bool { return unsent.Take(0, n) }, unsent.Give
	if quic {
		hold, release = c.Hold, c.Release
	}
	if !hold(len(a.body)) {
		s.Limited("in_flight_bytes")
		panic(http.ErrAbortHandler) // ends the stream, or the connection
	}
	defer release(len(a.body))
	// By itself net/http would have the time begin with the request: replies that are long in coming would be lost.
	if s.Write > 0 {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.Write))
	}
	w.WriteHeader(a.status)
	if _, err := w.Write(a.body); errors.Is(err, os.ErrDeadlineExceeded) {
		s.Limited("write_time")
	}
}

// respond is the response to r: the answer to its query, or why there is none. It waits for the answer.
func respond(s *service.Service, r *http.Request, dw *Writer) answer {
	if longHeader(s, r) {
		s.Limited("header_bytes")
		return tooLong
	}
	if settings(s).Valid != nil {
		switch ok, err := validated(s, r); {
		case err != nil:
			return noReply
		case !ok:
			return notFound
		}
	} else if r.URL.Path != doh.Path {
		return notFound
	}
	// It waits for the body of a POST.
	packet, err := packetOf(r)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.Limited("read_time")
	case errors.Is(err, quicconn.ErrMany):
		s.Limited("waiting")
		return crowded
	}
	// HTTP/3 leaves it to the server to see that a body has ended early (RFC 9114 §4.1.2).
	if err == nil && r.Method == http.MethodPost && int64(len(packet)) < r.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && s.TooLong(len(packet)) {
		s.Limited("query_bytes")
		err = service.ErrLong
	}
	if err != nil {
		log.Debugf(errPacket, err)
		return bad
	}
	// Only now is the connection busy: one that sends its query slowly may have to give way to another one.
	if c, ok := r.Context().Value(busyConnKey{}).(busyConn); ok {
		c.Occupy()
		defer c.Vacate()
	}
	ctx := context.WithValue(r.Context(), RequestKey{}, r)
	return dw.answer(exec.Serve(ctx, s, dw, packet))
}

// packetOf is the query in r. Of HTTP/3, there may be very many requests whose bodies have come but for their ends.
func packetOf(r *http.Request) ([]byte, error) {
	if _, quic := r.Context().Value(busyConnKey{}).(*quicconn.Conn); !quic || r.Body == nil {
		return doh.Packet(r)
	}
	in := quicconn.NewIncoming(r.Body)
	defer in.Done()
	r.Body = struct {
		io.Reader
		io.Closer
	}{in, r.Body}
	return doh.Packet(r)
}

// validated reports whether the settings' Valid takes r. The error is that it has panicked, which costs one request, as
// a panic of a plugin costs one query.
func validated(s *service.Service, r *http.Request) (ok bool, err error) {
	if !s.Debug {
		defer func() {
			if v := recover(); v != nil {
				s.Recovered(v)
				err = errPanic
			}
		}()
	}
	return settings(s).Valid(r), nil
}

// errPanic is nothing that the client has done: the response is noReply.
var errPanic = errors.New("the function that validates requests has panicked")

// answer is the response to a query that was served with the error given.
func (d *Writer) answer(err error) answer {
	if err == exec.ErrCrowded {
		return crowded
	}
	if err != nil {
		log.Debugf(errPacket, err)
		return bad
	}
	m, body := d.kept()
	if body == nil && m != nil {
		if body, err = d.Pack(m); err != nil {
			return text(http.StatusInternalServerError, err.Error())
		}
	}
	if body == nil {
		return noReply
	}
	return packed(body)
}

// longHeader reports whether the header of a request is longer than the limit.
func longHeader(s *service.Service, r *http.Request) bool {
	n := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + headerFieldSpace
		}
	}
	return s.HeaderBytes > 0 && n > s.HeaderBytes
}

// headerFieldSpace is what a header field counts beside its name and value (RFC 9113 §6.5.2).
const headerFieldSpace = 32

// HeaderSpace is the limit of a header that net/http and http3 are told, of a listener with the limit n: one beyond
// it, as they do not count what they refuse. least is the limit of listeners by default.
func HeaderSpace(n, least int) int { return 2 * max(n, least) }

// remoteAddr is where a request came from.
func remoteAddr(r *http.Request, udp bool) net.Addr {
	if udp {
		// net/http has the address as text only. Parsed, it asks no resolver: there are no names in it.
		if a, err := net.ResolveUDPAddr("udp", r.RemoteAddr); err == nil {
			return a
		}
		return &net.UDPAddr{}
	}
	if a, err := net.ResolveTCPAddr("tcp", r.RemoteAddr); err == nil {
		return a
	}
	return &net.TCPAddr{}
}

// localAddr is the address that a request was sent to: that of its connection, or else of the listener.
func localAddr(s *service.Service, r *http.Request) net.Addr {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return a
	}
	_, hostport, _ := strings.Cut(s.Label, "://")
	if a, err := net.ResolveTCPAddr("tcp", hostport); err == nil {
		return a
	}
	return &net.TCPAddr{}
}

// debugLog is where net/http puts what it has to say: the log, at debug level.
func debugLog() *golog.Logger { return golog.New(debugWriter{}, "", 0) }

// debugWriter logs what is written to it.
type debugWriter struct{}

func (debugWriter) Write(p []byte) (int, error) {
	log.Debug(strings.TrimSpace(string(p)))
	return len(p), nil
}
