package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/quic-go/quic-go"
)

// holder is an upstream that holds its replies on the first connections, until it is told to let go.
type holder struct {
	silent  int64 // so many connections
	opened  atomic.Int64
	asked   atomic.Int64
	release chan struct{}
}

// hold holds the reply to a query on the n-th connection.
func (h *holder) hold(n int64) {
	if h.asked.Add(1); n <= h.silent {
		<-h.release
	}
}

// reply is the reply to a query on the n-th connection.
func (h *holder) reply(n int64, q []byte) []byte {
	h.hold(n)
	return replyTo(q)
}

// connNumber is the key of a connection's number in the context of its requests.
type connNumber struct{}

func (h *holder) serveHTTP(w http.ResponseWriter, r *http.Request) {
	n, _ := r.Context().Value(connNumber{}).(int64)
	b := h.reply(n, queryOf(r))
	w.Header().Set("Content-Type", doh.MimeType)
	w.Write(b)
}

func (h *holder) serveTCP(conn net.Conn) {
	n := h.opened.Add(1)
	var mu sync.Mutex
	for {
		q, err := readFrame(conn)
		if err != nil {
			return
		}
		go func() {
			b := frame(h.reply(n, q))
			mu.Lock()
			defer mu.Unlock()
			conn.Write(b)
		}()
	}
}

// proxy is a Proxy for h over a protocol.
func (h *holder) proxy(t *testing.T, protocol string) (p *Proxy) {
	t.Helper()
	server, roots := authority(t)
	numbered := func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connNumber{}, h.opened.Add(1))
	}
	switch protocol {
	case transport.DNS:
		p = proxyTo(t, tcpUpstream(t, h.serveTCP), protocol)
	case transport.TLS:
		p = proxyTo(t, tcpUpstream(t, func(conn net.Conn) { h.serveTCP(tls.Server(conn, server)) }), protocol)
	case transport.HTTPS:
		s := httptest.NewUnstartedServer(http.HandlerFunc(h.serveHTTP))
		s.EnableHTTP2, s.TLS, s.Config.ConnContext = true, server.Clone(), numbered
		s.StartTLS()
		t.Cleanup(s.Close)
		p = proxyTo(t, strings.TrimPrefix(s.URL, "https://"), protocol)
	case transport.HTTPS3: // which tells handlers nothing of their connections
		p = proxyTo(t, http3At(t, server, nil, func(*quic.Conn) { h.opened.Add(1) }, func(w http.ResponseWriter, r *http.Request) {
			b := h.reply(h.opened.Load(), queryOf(r))
			w.Header().Set("Content-Type", doh.MimeType)
			w.Write(b)
		}), protocol)
	case transport.QUIC:
		p = proxyTo(t, quicUpstream(t, server, nil, func(conn *quic.Conn) {
			n := h.opened.Add(1)
			streams(conn, func(s *quic.Stream) {
				h.hold(n)
				echoStream(s)
			})
		}), protocol)
	}
	p.SetTLSConfig(nil)
	if protocol != transport.DNS {
		p.SetTLSConfig(&tls.Config{RootCAs: roots})
	}
	p.SetReadTimeout(time.Minute)
	return p
}

// quiet reports whether the upstream is silent on all connections, or on as many as there may be.
func quiet(p *Proxy) bool {
	e := &p.engine
	now, patience := e.now(), e.usual.Patience()
	all, silent := 0, 0
	note := func(longer bool) {
		if all++; longer {
			silent++
		}
	}
	e.mu.Lock()
	for _, c := range e.streams.conns {
		note(c.silence.Longer(patience, now))
	}
	for _, c := range e.https.conns {
		note(c.silence.Longer(patience, now))
	}
	e.mu.Unlock()
	e.quic.mu.Lock()
	for _, l := range e.quic.links {
		note(l.silence.Longer(patience, now))
	}
	e.quic.mu.Unlock()
	return all > 0 && silent == all
}

// A connection on which the upstream is silent gets no more queries while another one brings replies: those that come
// meanwhile need not wait until it is known to be dead.
func TestSilentConnections(t *testing.T) {
	for protocol, silent := range map[string]int64{transport.DNS: maxStreams, transport.HTTPS: 1, transport.HTTPS3: 1, transport.QUIC: 1} {
		t.Run(protocol, func(t *testing.T) {
			h := &holder{silent: silent, release: make(chan struct{})}
			p := h.proxy(t, protocol)
			var held sync.WaitGroup
			for i := range silent {
				held.Go(func() {
					if _, err := ask(p, "held.example.org.", overTCP); err != nil {
						t.Error(err)
					}
				})
				eventually.Holds(t, "one connection more", func() bool { return h.opened.Load() == i+1 })
			}
			eventually.Holds(t, "silence", func() bool { return quiet(p) })
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for range 20 {
				if _, err := askCtx(ctx, p, "www.example.org.", overTCP); err != nil {
					t.Error("beside a connection that is silent:", err)
					break
				}
			}
			close(h.release)
			held.Wait()
			// On a machine that stands still for a while others may be silent, too.
			if n := h.opened.Load(); n <= silent || n > silent+spareStreams {
				t.Errorf("%d connections, %d of them silent", n, silent)
			}
		})
	}
}

// An upstream that is slow altogether does not get one connection after the other.
func TestSlowUpstreamGetsFewConnections(t *testing.T) {
	for protocol, most := range map[string]int64{
		transport.DNS: maxStreams + spareStreams, transport.HTTPS: maxLive, transport.HTTPS3: maxLive, transport.QUIC: maxLive,
	} {
		t.Run(protocol, func(t *testing.T) {
			h := &holder{silent: 100, release: make(chan struct{})}
			p := h.proxy(t, protocol)
			var held sync.WaitGroup
			for i := range most + 2 {
				held.Go(func() {
					if _, err := ask(p, "held.example.org.", overTCP); err != nil {
						t.Error(err)
					}
				})
				eventually.Holds(t, "one connection more", func() bool { return h.opened.Load() == min(i+1, most) })
				eventually.Holds(t, "silence", func() bool { return quiet(p) })
			}
			close(h.release)
			held.Wait()
			if _, err := ask(p, "www.example.org.", overTCP); err != nil || h.opened.Load() != most {
				t.Errorf("%d connections, %v", h.opened.Load(), err)
			}
		})
	}
}

// Queries that are given up soon, as those are whose hedge was quicker, tell of a dead connection, too, if there are
// several, and no reply between them.
func TestGivenUpOnDeadConnection(t *testing.T) {
	for _, protocol := range []string{transport.DNS, transport.HTTPS, transport.HTTPS3, transport.QUIC} {
		t.Run(protocol, func(t *testing.T) {
			h := &holder{silent: 1, release: make(chan struct{})}
			p := h.proxy(t, protocol)
			defer close(h.release)
			for i := int64(0); i < 3 && h.opened.Load() < 2; i++ { // on a busy machine one may be given up late
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					_, err := askCtx(ctx, p, "www.example.org.", overTCP)
					ended <- err
				}()
				eventually.Holds(t, "a query has come", func() bool { return h.asked.Load() > i })
				cancel()
				if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if _, err := askCtx(ctx, p, "www.example.org.", overTCP); err != nil || h.opened.Load() < 2 {
				t.Errorf("after three that were given up: %v, %d connections", err, h.opened.Load())
			}
		})
	}
}

// Which connection over TCP gets the next query, if all there may be are of no use: those that take no more queries hold
// no place, and one that never came about makes room. Else no query would get through after the network was away.
func TestConnectionsThatMakeRoom(t *testing.T) {
	const now, patience = int64(time.Hour), time.Second
	p := proxyTo(t, "127.0.0.1:1", transport.DNS)
	e := &p.engine
	silent := func(c *streamConn) { c.open = true; c.silence.Ask(now - 2*int64(patience)) }
	kinds := map[byte]func(*streamConn){
		's': silent,
		'r': func(c *streamConn) { silent(c); c.retired = true },
		'd': func(*streamConn) {}, // the dialling does not end
		'o': func(c *streamConn) { c.open = true },
	}
	for _, tc := range []struct {
		pool string
		want int // -1: another one
		left int // that hold places
	}{
		{"ssss", -1, 4},
		{"ssssssss", 7, 8},
		{"ssssrrrrssss", 11, 8},
		{"rrrrrrrrrrrr", -1, 0},
		{"rrrrrrrrrrro", -1, 1},
		{"dddddddd", -1, 7},
		{"sssdssss", -1, 7},
		{"ssssddddo", 8, 9},
	} {
		pool := &streamPool{}
		e.mu.Lock()
		for i := range tc.pool {
			c := newStreamConn(e, now-2*slowDial)
			c.pool = pool
			c.pending.n = 1
			kinds[tc.pool[i]](c)
			pool.conns = append(pool.conns, c)
		}
		all := append([]*streamConn(nil), pool.conns...)
		got := slices.Index(all, pool.choose(0, now, patience))
		left := 0
		for _, c := range pool.conns {
			if !c.retired {
				left++
			}
		}
		e.unlock()
		if got != tc.want || left != tc.left {
			t.Errorf("%s: the query goes to %d, and %d are left", tc.pool, got, left)
		}
	}
}
