package doh

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/quicconn"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/test/clients"
)

// served is what serves DNS over HTTP in a test.
type served struct {
	*service.Service
	addr  string
	end   func() error // stops it, and waits for that
	http1 *HTTP1       // nil for HTTP/3
}

// serviceFor is a Service of DNS over HTTP with that handler.
func serviceFor(t testing.TB, h plugin.Handler) *service.Service {
	t.Helper()
	s := coretest.Service(t, coretest.Label(t), h)
	s.HeaderBytes, s.Streams = leastHeader, 250
	s.Proto = &Settings{Responses: vars.HTTPSResponsesCount}
	return s
}

// leastHeader is the limit of headers where tests set none.
const leastHeader = 96 << 10

func tlsConfig(t testing.TB) *tls.Config { return coretest.Certificate(t, "h2", "http/1.1") }

// serve serves HTTP/1.1 and HTTP/2 on loopback; config is nil for none of TLS.
func serve(t testing.TB, s *service.Service, config *tls.Config) *served {
	t.Helper()
	from := coretest.ListenTCP(t)
	l := conn.NewListener(s, conn.ClientAuthOf(config))
	h := NewHTTP1(HTTP1Settings{s.Read, s.Write, s.Idle, HeaderSpace(s.HeaderBytes, leastHeader)}, &l.Seat, from.Addr())
	l.Beside = h
	l.ListenOn(from)
	end := coretest.Serving(t, l, func() error { return l.Serve(from, Handler(config, h)) })
	return &served{s, from.Addr().String(), end, h}
}

// codes3 are those of HTTP/3.
var codes3 = quicconn.Codes{
	None: quic.ApplicationErrorCode(http3.ErrCodeNoError), TooMany: quic.ApplicationErrorCode(http3.ErrCodeExcessiveLoad),
}

// serve3 serves HTTP/3 on loopback.
func serve3(t testing.TB, s *service.Service) (*served, *HTTP3) {
	t.Helper()
	return serve3With(t, s, func(*quicconn.Conn) {})
}

// serve3With is serve3 with each connection seen.
func serve3With(t testing.TB, s *service.Service, see func(*quicconn.Conn)) (*served, *HTTP3) {
	t.Helper()
	s.HeaderBytes, s.Streams = 16<<10, 256
	settings := &HTTP3Settings{
		Settings: Settings{Responses: vars.HTTPS3ResponsesCount, Valid: settings(s).Valid},
		Configs: quicconn.Configs{
			TLS: http3.ConfigureTLSConfig(coretest.Certificate(t)), QUIC: quicconn.Config(&s.Limits, s.Idle, true),
		},
	}
	settings.QUIC.EnableDatagrams = true
	s.Proto = settings
	p := coretest.ListenUDP(t)
	q, err := quicconn.Listen(s, p, p, codes3)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHTTP3(q, HeaderSpace(s.HeaderBytes, leastHeader), s.Idle)
	end := coretest.Serving(t, h, func() error {
		return h.Serve(s, func(c *quicconn.Conn) { see(c); h.ServeConn(c) })
	})
	return &served{s, p.LocalAddr().String(), end, nil}, h
}

// responses is how often s has responded with a status.
func (s *served) responses(status int) int {
	return int(testutil.ToFloat64(settings(s.Service).Responses.WithLabelValues(s.Label, fmt.Sprint(status))))
}

// told is what a client sees of a response, apart from the reply.
type told struct {
	status      int
	kind, cache string
	body        string // of text
}

// get sends a request of any kind.
func get(t *testing.T, c *clients.HTTPClient, method, target, body string) (told, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, c.URL+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	length := resp.Header.Get("Content-Length")
	if resp.Header.Get("Date") == "" || method != http.MethodHead && length != fmt.Sprint(len(b)) {
		t.Errorf("%s %s: header %v, body %d octets", method, target, resp.Header, len(b))
	}
	out := told{resp.StatusCode, resp.Header.Get("Content-Type"), resp.Header.Get("Cache-Control"), ""}
	if out.kind != doh.MimeType {
		out.body = string(b)
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: header %v", method, target, resp.Header)
		}
	}
	return out, b
}
