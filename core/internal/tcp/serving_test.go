package tcp

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin"
)

// served is a listener at work.
type served struct {
	*service.Service
	addr string
	end  func() error // stops it, and waits for that
}

// serve serves a handler on loopback, with TLS if there is a configuration. change may change its Service.
func serve(t *testing.T, h plugin.Handler, config *tls.Config, change func(*service.Service)) *served {
	t.Helper()
	s := coretest.Service(t, coretest.Label(t), h)
	if change != nil {
		change(s)
	}
	spoken := Handler
	spoken.TLS = config
	return serveOn(t, s, coretest.ListenTCP(t), spoken)
}

// serveOn serves what comes on from as h says.
func serveOn(t testing.TB, s *service.Service, from net.Listener, h conn.Handler) *served {
	t.Helper()
	l := conn.NewListener(s, conn.ClientAuthOf(h.TLS))
	l.ListenOn(from)
	end := coretest.Serving(t, l, func() error { return l.Serve(from, h) })
	return &served{s, from.Addr().String(), end}
}
