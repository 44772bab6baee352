package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/quic-go/quic-go"
)

// Where no second connection can be opened, as an upstream allows a single one, queries go on over the first one, though
// that is silent: the upstream may only be slow.
func TestSecondConnectionIsRefused(t *testing.T) {
	for _, protocol := range []string{transport.TLS, transport.HTTPS, transport.HTTPS3, transport.QUIC} {
		t.Run(protocol, func(t *testing.T) {
			h := &holder{silent: 1, release: make(chan struct{})}
			p := h.proxy(t, protocol)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			const queries = 4
			ended := make(chan error, queries)
			ask := func() {
				_, err := askCtx(ctx, p, "www.example.org.", overTCP)
				ended <- err
			}
			go ask()
			eventually.Holds(t, "a query", func() bool { return h.asked.Load() == 1 })
			p.SetTLSConfig(&tls.Config{RootCAs: x509.NewCertPool()}) // no handshake comes to its end
			eventually.Holds(t, "silence", func() bool { return quiet(p) })
			for i := int64(1); i < queries; i++ {
				go ask()
				eventually.Holds(t, "another query, or its end", func() bool { return h.asked.Load() > i || len(ended) > 0 })
			}
			close(h.release)
			for range queries {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// When the network is back, the next connection may be opened: that the last one was not, for want of a network, has
// nobody wait.
func TestRefusal(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{syscall.ECONNREFUSED, true},
		{io.EOF, true},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, true},
		{&quic.TransportError{Remote: true, ErrorCode: quic.ConnectionRefused}, true},
		{syscall.EHOSTUNREACH, false},
		{syscall.ENETUNREACH, false},
		{context.DeadlineExceeded, false},
		{late("dial", "tcp", nil, nil), false},
		{&quic.HandshakeTimeoutError{}, false},
		{&quic.IdleTimeoutError{}, false},
	} {
		for _, err := range []error{c.err, &net.OpError{Op: "dial", Err: c.err}, fmt.Errorf("around: %w", c.err)} {
			if refusal(err) != c.want {
				t.Errorf("%v: %v", err, !c.want)
			}
		}
	}
}

// After a refusal queries share the connections that there are, for a second. An upstream that takes one query on each
// would lose all but one of them.
func TestSharedAfterRefusal(t *testing.T) {
	const now = int64(time.Hour)
	p := proxyTo(t, "127.0.0.1:1", transport.DNS)
	for _, c := range []struct {
		open, retired, oneOff, shared bool
	}{
		{open: true, shared: true},
		{open: true, oneOff: true},
		{open: true, retired: true},
		{},
	} {
		conn := newStreamConn(&p.engine, now)
		conn.open, conn.retired, conn.pending.n = c.open, c.retired, 1
		pool := &streamPool{conns: []*streamConn{conn}, oneOff: c.oneOff}
		others := pool.refused(now)
		shared := pool.choose(0, now+slowDial/2, time.Hour) == conn
		if others != c.shared || shared != c.shared {
			t.Errorf("%+v: %v, %v", c, others, shared)
		}
		if pool.choose(0, now+2*slowDial, time.Hour) != nil {
			t.Errorf("%+v: no other one is opened any more", c)
		}
	}
}
