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
