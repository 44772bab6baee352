package proxy

import (
	"crypto/tls"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// openConns are connections of a server that are not closed.
type openConns struct {
	mu  sync.Mutex
	all []*quic.Conn
}

func (o *openConns) add(c *quic.Conn) {
	o.mu.Lock()
	o.all = append(o.all, c)
	o.mu.Unlock()
}

// count is how many are open now.
func (o *openConns) count() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.all {
		if c.Context().Err() == nil {
			n++
		}
	}
	return n
}

// opened is how many there have been.
func (o *openConns) opened() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all)
}

// last is the latest one.
func (o *openConns) last() *quic.Conn {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[len(o.all)-1]
}

// Requests under way on a connection that ends are made again on one connection, which is then the only one.
func TestDoH3OneConnectionInPlaceOfOne(t *testing.T) {
	const all, ends = 10, 5
	var conns openConns
	var arrived atomic.Int64
	p := http3Upstream(t, nil, conns.add, func(w http.ResponseWriter, r *http.Request) {
		if n := arrived.Add(1); (n-1)/all%2 == 0 {
			if n%all == 0 {
				conns.last().CloseWithError(codeNoError, "")
			}
			<-r.Context().Done()
			return
		}
		answerHTTP(w, r)
	})
	p.SetReadTimeout(20 * time.Second)
	patient(p)
	for range ends {
		askMany(t, p, all)
	}
	if n := arrived.Load(); n != 2*all*ends {
		t.Errorf("%d requests", n)
	}
	eventually.Holds(t, "one connection is open", func() bool { return conns.count() == 1 })
}

// A connection that takes no more requests (GOAWAY) answers those that it has, and the next ones go out on another one.
func TestDoH3GoesAway(t *testing.T) {
	server, roots := authority(t)
	l, err := quic.ListenAddr("127.0.0.1:0", http3.ConfigureTLSConfig(server), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var conns openConns
	var held atomic.Bool
	arrived, released := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	first := &http3.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if held.CompareAndSwap(false, true) {
			close(arrived)
			<-released
		}
		answerHTTP(w, r)
	})}
	defer first.Close()
	others := &http3.Server{Handler: http.HandlerFunc(answerHTTP)}
	defer others.Close()
	defer release() // before the servers wait for it
	go func() {
		for s := first; ; s = others {
			c, err := l.Accept(t.Context())
			if err != nil {
				return
			}
			conns.add(c)
			go s.ServeQUICConn(c)
		}
	}()
	p := proxyTo(t, l.Addr().String(), transport.HTTPS3)
	p.SetTLSConfig(&tls.Config{RootCAs: roots})
	p.SetReadTimeout(20 * time.Second)
	patient(p)
	var asking sync.WaitGroup
	asking.Go(func() {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Errorf("the one under way: %v", err)
		}
	})
	<-arrived
	going := make(chan error, 1)
	go func() { going <- first.Shutdown(t.Context()) }()
	eventually.Holds(t, "there is another connection", func() bool {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
		return conns.count() == 2
	})
	release()
	asking.Wait()
	if err := <-going; err != nil {
		t.Error(err)
	}
	eventually.Holds(t, "the first one is closed", func() bool { return conns.count() == 1 })
}

// A Proxy that is stopped closes its connections: the upstream does not keep them until they are idle.
func TestDoH3StopCloses(t *testing.T) {
	var conns openConns
	p := http3Upstream(t, &quic.Config{MaxIdleTimeout: time.Hour}, conns.add, answerHTTP)
	p.SetExpire(time.Hour)
	if _, err := ask(p, "www.example.org.", Options{}); err != nil || conns.count() != 1 {
		t.Fatal(err)
	}
	p.Stop()
	eventually.Holds(t, "none is open", func() bool { return conns.count() == 0 })
}

// A connection whose streams fail, though it stays open, has no more requests: the next ones go out on another one. Those
// that are refused do so themselves.
func TestDoH3StreamsFail(t *testing.T) {
	for code, fails := range map[http3.ErrCode]int{http3.ErrCodeRequestRejected: 0, http3.ErrCodeInternalError: 1} {
		var conns openConns
		var arrived atomic.Int64
		p := http3Upstream(t, nil, conns.add, func(w http.ResponseWriter, r *http.Request) {
			if arrived.Add(1) > 1 && conns.opened() == 1 {
				s := w.(http3.HTTPStreamer).HTTPStream()
				s.CancelRead(quic.StreamErrorCode(code))
				s.CancelWrite(quic.StreamErrorCode(code))
				return
			}
			answerHTTP(w, r)
		})
		failed := 0
		for range 4 {
			if _, err := ask(p, "www.example.org.", Options{}); err != nil {
				failed++
			}
		}
		if n := arrived.Load(); failed != fails || n > 6 {
			t.Errorf("%v: %d failed, with %d requests", code, failed, n)
		}
		eventually.Holds(t, "the first one is closed", func() bool { return conns.count() == 1 && conns.last().Context().Err() == nil })
	}
}

// A redirect to what is not HTTPS is not followed, though the request would go out on the same connection.
func TestDoH3RedirectsStayHTTPS(t *testing.T) {
	for scheme, follows := range map[string]bool{"https": true, "http": false} {
		var arrived atomic.Int64
		p := http3Upstream(t, nil, func(*quic.Conn) {}, func(w http.ResponseWriter, r *http.Request) {
			if arrived.Add(1) == 1 {
				http.Redirect(w, r, scheme+"://"+r.Host+r.URL.Path, http.StatusTemporaryRedirect)
				return
			}
			answerHTTP(w, r)
		})
		if _, err := ask(p, "www.example.org.", Options{}); (err == nil) != follows || (arrived.Load() == 2) != follows {
			t.Errorf("%s: %d requests, %v", scheme, arrived.Load(), err)
		}
	}
}

// An upstream whose certificate is not verified is told its name all the same.
func TestDoH3TellsName(t *testing.T) {
	server, _ := authority(t)
	server = server.Clone()
	var name atomic.Value
	server.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name.Store(h.ServerName)
		return nil, nil
	}
	at := http3At(t, server, nil, func(*quic.Conn) {}, answerHTTP)
	p := proxyTo(t, strings.Replace(at, "127.0.0.1", "localhost", 1), transport.HTTPS3)
	p.SetTLSConfig(&tls.Config{InsecureSkipVerify: true})
	if _, err := ask(p, "www.example.org.", Options{}); err != nil || name.Load() != "localhost" {
		t.Errorf("%v, %v", name.Load(), err)
	}
}
