package proxy

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/transport"
)

// endingUpstream is an upstream of HTTP/2 that answers at once until a connection has had so many requests, leaves the
// next ones without an answer, and closes the connection with the last of so many. After some connections it answers all. A
// query for ends.example.org closes each.
type endingUpstream struct {
	answered, taken, ends int64
	conns                 atomic.Int64
}

// endingConn is one of its connections.
type endingConn struct {
	net.Conn
	n        int64
	seen     atomic.Int64
	answered chan struct{} // closed when that many have their answers
}

func (u *endingUpstream) proxy(t *testing.T) *Proxy {
	t.Helper()
	type key struct{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(key{}).(*endingConn)
		q := queryOf(r)
		switch n := c.seen.Add(1); {
		case bytes.Contains(q, []byte("\x04ends\x07example")):
			c.Close()
		case c.n > u.ends || n <= u.answered:
			w.Header().Set("Content-Type", "application/dns-message")
			w.Write(replyTo(q))
			http.NewResponseController(w).Flush() // it is on its way
			if n == u.answered {
				close(c.answered)
			}
		case n == u.taken:
			<-c.answered
			c.Close()
		default:
			<-r.Context().Done()
		}
	}))
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, key{}, &endingConn{Conn: c, n: u.conns.Add(1), answered: make(chan struct{})})
	}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	p := proxyTo(t, strings.TrimPrefix(s.URL, "https://"), transport.HTTPS)
	p.SetTLSConfig(s.Client().Transport.(*http.Transport).TLSClientConfig.Clone())
	p.SetReadTimeout(20 * time.Second)
	patient(p)
	return p
}

// Connections that end one after the other under many queries, of which they have answered some, cost none of these.
func TestConnectionsEndUnderQueries(t *testing.T) {
	u := &endingUpstream{answered: 1, taken: 10, ends: maxRetries}
	p := u.proxy(t)
	if _, err := ask(p, "www.example.org.", Options{}); err != nil {
		t.Fatal(err)
	}
	askMany(t, p, 30)
	if n := u.conns.Load(); n <= u.ends {
		t.Errorf("only %d connections", n)
	}
}

// A query that always ends its connection is asked so many times only, and once of an upstream that has not answered yet.
func TestQueryThatEndsConnections(t *testing.T) {
	u := &endingUpstream{answered: 1 << 30}
	p := u.proxy(t)
	for i, step := range []struct {
		name  string
		fails bool
		conns int64
	}{
		{"ends.example.org.", true, 1}, {"www.example.org.", false, 2}, {"www.example.org.", false, 2},
		{"ends.example.org.", true, 2 + maxRetries}, {"www.example.org.", false, 2 + maxRetries + 1},
	} {
		if _, err := ask(p, step.name, Options{}); (err != nil) != step.fails || u.conns.Load() != step.conns {
			t.Errorf("%d: %d connections, %v", i, u.conns.Load(), err)
		}
	}
}
