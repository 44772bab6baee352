package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// http3Upstream is a DoH upstream over HTTP/3 and a Proxy that trusts it. opened is told each connection.
func http3Upstream(t *testing.T, conf *quic.Config, opened func(*quic.Conn), handle http.HandlerFunc) *Proxy {
	t.Helper()
	server, roots := authority(t)
	p := proxyTo(t, http3At(t, server, conf, opened, handle), transport.HTTPS3)
	p.SetTLSConfig(&tls.Config{RootCAs: roots})
	return p
}

// http3At is the address of a DoH upstream over HTTP/3.
func http3At(t *testing.T, server *tls.Config, conf *quic.Config, opened func(*quic.Conn), handle http.HandlerFunc) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http3.Server{TLSConfig: http3.ConfigureTLSConfig(server), Handler: handle, QUICConfig: conf,
		ConnContext: func(ctx context.Context, c *quic.Conn) context.Context { opened(c); return ctx }}
	done := make(chan struct{})
	go func() {
		s.Serve(conn)
		close(done)
	}()
	t.Cleanup(func() {
		s.Close()
		conn.Close()
		<-done
	})
	return conn.LocalAddr().String()
}

func answerHTTP(w http.ResponseWriter, r *http.Request) {
	q := queryOf(r)
	if len(q) < 12 || q[0] != 0 || q[1] != 0 || r.URL.Path != doh.Path || r.ProtoMajor != 3 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", doh.MimeType)
	w.Write(replyTo(q))
}

func TestDoH3(t *testing.T) {
	var conns atomic.Int64
	p := http3Upstream(t, nil, func(*quic.Conn) { conns.Add(1) }, answerHTTP)
	patient(p)
	p.SetReadTimeout(20 * time.Second)
	askMany(t, p, 90) // as many as there are streams: they find one at once
	p.SetDOHRequestOptions(http.MethodGet)
	askMany(t, p, 5)
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	if err := p.GetHealthchecker().Check(p); err != nil {
		t.Error(err)
	}
	p = http3Upstream(t, nil, func(*quic.Conn) {}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	if _, err := ask(p, "www.example.org.", Options{}); err == nil {
		t.Error("a teapot answered")
	}
}

// A connection that the upstream closed while it was idle fails no query, and the next one resumes the session.
func TestDoH3ClosedConnections(t *testing.T) {
	var conns, resumed atomic.Int64
	var last atomic.Pointer[quic.Conn]
	p := http3Upstream(t, nil, func(c *quic.Conn) {
		conns.Add(1)
		if c.ConnectionState().TLS.DidResume {
			resumed.Add(1)
		}
		last.Store(c)
	}, answerHTTP)
	for i := range 8 {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(i, err)
		}
		time.Sleep(10 * time.Millisecond)
		last.Load().CloseWithError(0x100, "") // H3_NO_ERROR
		if i%2 == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	if c, r := conns.Load(), resumed.Load(); c < 7 || r < c-2 {
		t.Errorf("%d connections, %d resumed", c, r)
	}
}

func TestDoH3IsStopped(t *testing.T) {
	asked := make(chan struct{}, 1)
	p := http3Upstream(t, nil, func(*quic.Conn) {}, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	go func() { <-asked; p.Stop() }()
	if _, err := ask(p, "www.example.org.", Options{}); err == nil || err.Error() != ErrTransportStopped {
		t.Error(err)
	}
}

// Upstreams of one name share their TLS sessions, and may be dialled at the same time.
func TestQUICSessionsAreShared(t *testing.T) {
	server, roots := authority(t)
	addr := quicUpstream(t, server, &quic.Config{Allow0RTT: true}, func(conn *quic.Conn) { streams(conn, echoStream) })
	cfg := &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	for range 3 { // the first time there is no session yet
		var dialled sync.WaitGroup
		for range 2 {
			p := quicTo(t, addr, roots)
			p.SetTLSConfig(cfg)
			dialled.Go(func() {
				if _, err := ask(p, "www.example.org.", Options{}); err != nil {
					t.Error(err)
				}
			})
		}
		dialled.Wait()
	}
}

// Who asks first opens the connection, but does not end it: a query whose hedge is quicker than a handshake would else
// leave none, and nor would the next one.
func TestDoH3DialOutlivesItsQuery(t *testing.T) {
	server, roots := authority(t)
	server = server.Clone()
	var handshakes atomic.Int64
	goOn := make(chan struct{})
	server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		handshakes.Add(1)
		<-goOn
		return nil, nil
	}
	p := proxyTo(t, http3At(t, server, nil, func(*quic.Conn) {}, answerHTTP), transport.HTTPS3)
	p.SetTLSConfig(&tls.Config{RootCAs: roots})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := askCtx(ctx, p, "www.example.org.", Options{})
		ended <- err
	}()
	eventually.Holds(t, "a handshake", func() bool { return handshakes.Load() == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(goOn)
	if _, err := ask(p, "www.example.org.", Options{}); err != nil || handshakes.Load() != 1 {
		t.Errorf("%d handshakes, %v", handshakes.Load(), err)
	}
}
