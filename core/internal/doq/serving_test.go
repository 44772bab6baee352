package doq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/quic-go/quic-go"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/quicconn"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/test/clients"
)

// served is a transport of DNS over QUIC at work.
type served struct {
	*service.Service
	addr string
	end  func() error // stops it, and waits for that
}

// serve serves a handler on loopback. change may change its Service.
func serve(t testing.TB, h plugin.Handler, workers int, change func(*service.Service)) *served {
	t.Helper()
	s := coretest.Service(t, coretest.Label(t), h)
	s.Streams = 256
	if change != nil {
		change(s)
	}
	s.Proto = &Settings{
		Configs: quicconn.Configs{TLS: coretest.Certificate(t, "doq"), QUIC: quicconn.Config(&s.Limits, s.Idle, false)},
		Workers: make(chan struct{}, workers),
	}
	p := coretest.ListenUDP(t)
	q, err := quicconn.Listen(s, p, p, quicconn.Codes{None: CodeNoError, TooMany: CodeExcessiveLoad})
	if err != nil {
		t.Fatal(err)
	}
	end := coretest.Serving(t, q, func() error { return q.Serve(s, Serve) })
	return &served{s, p.LocalAddr().String(), end}
}

// counted is how often a connection, or a query, has ended with that code.
func (s *served) counted(code string) int {
	return int(testutil.ToFloat64(vars.QUICResponsesCount.WithLabelValues(s.Label, code)))
}

// query is a query as DoQ wants it: with message id 0.
func query(name string) *dns.Msg {
	m := coretest.Query(name)
	m.Id = 0
	return m
}

// framed is m with its length before it.
func framed(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	return Frame(coretest.Packed(t, m))
}

// send sends octets on a stream of its own.
func send(t testing.TB, c *quic.Conn, b []byte, end bool) *quic.Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clients.AskTime)
	defer cancel()
	stream, err := c.OpenStreamSync(ctx)
	if err != nil {
		t.Fatal(err)
	}
	stream.SetDeadline(time.Now().Add(clients.AskTime))
	stream.Write(b)
	if end {
		stream.Close()
	}
	return stream
}

// closeCode is the code with which the server ends a connection, -1 if it does not.
func closeCode(t testing.TB, c *quic.Conn) int {
	t.Helper()
	select {
	case <-c.Context().Done():
	case <-time.After(clients.AskTime):
		return -1
	}
	var app *quic.ApplicationError
	if err := context.Cause(c.Context()); errors.As(err, &app) && app.Remote {
		return int(app.ErrorCode)
	}
	t.Errorf("the connection ended with %v", context.Cause(c.Context()))
	return -1
}

// resetCode is the code with which the server ends a stream, -1 if it does not.
func resetCode(stream *quic.Stream) int {
	_, err := clients.ReadFrame(stream)
	var reset *quic.StreamError
	if !errors.As(err, &reset) || !reset.Remote {
		return -1
	}
	return int(reset.ErrorCode)
}
