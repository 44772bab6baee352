package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/quic-go/quic-go"
)

// relay passes on what comes on its connections to a server, until it is deaf: then nothing passes on those that
// are open, and they stay open. It is a router on the way that has forgotten them.
type relay struct {
	net.Listener
	to      string
	running sync.WaitGroup
	opened  atomic.Int64
	resets  atomic.Bool // what comes on a connection that is deaf resets it

	mu    sync.Mutex
	conns []net.Conn
	deaf  *atomic.Bool // the connections since the last call of forget
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, to: to, deaf: new(atomic.Bool)}
	r.running.Go(r.accept)
	t.Cleanup(func() {
		l.Close()
		r.mu.Lock()
		for _, c := range r.conns {
			c.Close()
		}
		r.mu.Unlock()
		r.running.Wait()
	})
	return r
}

func (r *relay) accept() {
	for {
		c, err := r.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", r.to)
		if err != nil {
			c.Close()
			continue
		}
		r.opened.Add(1)
		r.mu.Lock()
		r.conns = append(r.conns, c, s)
		deaf := r.deaf
		r.mu.Unlock()
		r.running.Go(func() { pass(s, c, deaf, r.resets.Load()) })
		r.running.Go(func() { pass(c, s, deaf, false) })
	}
}

func pass(to, from net.Conn, deaf *atomic.Bool, resets bool) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if deaf.Load() && err == nil {
			if resets {
				from.(*net.TCPConn).SetLinger(0)
				from.Close()
				to.Close()
				return
			}
			continue
		}
		if _, werr := to.Write(b[:n]); err != nil || werr != nil {
			to.(*net.TCPConn).CloseWrite()
			return
		}
	}
}

// forget makes nothing pass on the connections that are open.
func (r *relay) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deaf.Store(true)
	r.deaf = new(atomic.Bool)
}

// httpsBehindRelay is a Proxy for an upstream of HTTPS behind a relay.
func httpsBehindRelay(t *testing.T) (*Proxy, *relay) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", doh.MimeType)
		w.Write(replyTo(queryOf(r)))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	r := newRelay(t, strings.TrimPrefix(s.URL, "https://"))
	p := proxyTo(t, r.Addr().String(), transport.HTTPS)
	p.SetTLSConfig(s.Client().Transport.(*http.Transport).TLSClientConfig.Clone())
	return p, r
}

// asksAnew makes forget end nothing but the query that is under way, again and again.
func asksAnew(t *testing.T, p *Proxy, forget func()) {
	t.Helper()
	for range 3 {
		p.SetReadTimeout(5 * time.Second)
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
		forget()
		p.SetReadTimeout(200 * time.Millisecond)
		if _, err := ask(p, "www.example.org.", Options{}); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("on a connection that is dead:", err)
		}
	}
}

// A connection on which nothing comes any more costs the queries that are under way, and no others.
func TestDoHLeavesDeadConnections(t *testing.T) {
	p, r := httpsBehindRelay(t)
	asksAnew(t, p, r.forget)
}

// A connection that the upstream knows no more costs no query, as with TCP.
func TestDoHLostConnections(t *testing.T) {
	p, r := httpsBehindRelay(t)
	r.resets.Store(true)
	for i := range 5 {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(i, err)
		}
		r.forget()
	}
	if n := r.opened.Load(); n != 5 {
		t.Errorf("%d connections", n)
	}
}

// A health check that is not answered leaves a dead connection, too.
func TestDoHChecksOnAnotherConnection(t *testing.T) {
	p, r := httpsBehindRelay(t)
	if _, err := ask(p, "www.example.org.", Options{}); err != nil {
		t.Fatal(err)
	}
	r.forget()
	h := p.GetHealthchecker()
	h.SetReadTimeout(200 * time.Millisecond)
	if err := h.Check(p); err == nil {
		t.Fatal("a reply came on a connection that is dead")
	}
	h.SetReadTimeout(5 * time.Second)
	if err := h.Check(p); err != nil {
		t.Error(err)
	}
}

// A server that is slow, but answers others meanwhile, keeps its connection.
func TestDoHKeepsSlowConnections(t *testing.T) {
	var conns sync.Map
	arrived := make(chan struct{})
	p := httpsUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		conns.Store(r.RemoteAddr, true)
		q := queryOf(r)
		if bytes.Contains(q, []byte("\x04slow\x07example")) {
			close(arrived)
			<-r.Context().Done() // as the query is given up
			return
		}
		w.Write(replyTo(q))
	})
	if _, err := ask(p, "www.example.org.", Options{}); err != nil {
		t.Fatal(err)
	}
	p.SetReadTimeout(2 * time.Second)
	slow := make(chan error, 1)
	go func() {
		_, err := ask(p, "slow.example.org.", Options{})
		slow <- err
	}()
	<-arrived
	for asking := true; asking; {
		select {
		case err := <-slow:
			if asking = false; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
		case <-time.After(time.Millisecond):
			if _, err := ask(p, "www.example.org.", Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	for _, c := range p.engine.https.conns {
		if c.retired {
			t.Error("a connection takes no more, though it brought replies")
		}
	}
}

func TestDoHMaxAge(t *testing.T) {
	p, r := httpsBehindRelay(t)
	p.SetMaxAge(time.Nanosecond)
	for range 3 {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.opened.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

// A server that has forgotten a connection over HTTP/3, and does not say so, costs the queries that are under way.
func TestDoH3LeavesDeadConnections(t *testing.T) {
	server, roots := authority(t)
	var to [4]*net.UDPAddr
	for i := range to {
		to[i] = net.UDPAddrFromAddrPort(netip.MustParseAddrPort(http3At(t, server, nil, func(*quic.Conn) {}, answerHTTP)))
	}
	var now atomic.Int64
	front, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	var client atomic.Pointer[net.UDPAddr]
	var running sync.WaitGroup
	running.Go(func() {
		b := make([]byte, 2048)
		for {
			n, from, err := front.ReadFromUDP(b)
			if err != nil {
				return
			}
			client.Store(from)
			back.WriteToUDP(b[:n], to[now.Load()])
		}
	})
	running.Go(func() {
		b := make([]byte, 2048)
		for {
			n, _, err := back.ReadFromUDP(b)
			if err != nil {
				return
			}
			front.WriteToUDP(b[:n], client.Load())
		}
	})
	t.Cleanup(func() {
		front.Close()
		back.Close()
		running.Wait()
	})
	p := proxyTo(t, front.LocalAddr().String(), transport.HTTPS3)
	p.SetTLSConfig(&tls.Config{RootCAs: roots})
	asksAnew(t, p, func() { now.Add(1) })
}
