package proxy

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/transport"
)

// An upstream that accepts connections, and says nothing, costs a bounded number of them.
func TestDoHDialsAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var accepted atomic.Int64
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			accepted.Add(1)
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	p := proxyTo(t, l.Addr().String(), transport.HTTPS)
	p.SetReadTimeout(50 * time.Millisecond)
	for range 4 {
		var asked sync.WaitGroup
		for range 100 {
			asked.Go(func() {
				if _, err := ask(p, "www.example.org.", Options{}); err == nil {
					t.Error("who says nothing has answered")
				}
			})
		}
		asked.Wait()
	}
	if n := accepted.Load(); n > maxHTTPConns {
		t.Errorf("%d connections for 400 queries", n)
	}
}

// However often connections end, and in whatever way, there are new ones.
func TestDoHConnectionsEndInManyWays(t *testing.T) {
	var n atomic.Int64
	var s *httptest.Server
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch i := n.Add(1); {
		case i%5 == 0:
			w.Header().Set("Connection", "close") // GOAWAY
		case i%7 == 0:
			panic(http.ErrAbortHandler) // RST_STREAM
		case i%11 == 0:
			s.CloseClientConnections()
		case i%61 == 0:
			<-r.Context().Done() // too late
			return
		}
		w.Write(replyTo(queryOf(r)))
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of panics
	s.StartTLS()
	t.Cleanup(s.Close)
	p := proxyTo(t, strings.TrimPrefix(s.URL, "https://"), transport.HTTPS)
	p.SetTLSConfig(s.Client().Transport.(*http.Transport).TLSClientConfig.Clone())
	p.SetReadTimeout(100 * time.Millisecond)
	const enough = 6 * maxHTTPConns // more than one of them in six ends a connection
	answered := 0
	for range enough {
		for range 10 {
			if _, err := ask(p, "www.example.org.", Options{}); err == nil {
				answered++
				break
			}
		}
	}
	if answered < enough {
		t.Errorf("%d of %d are answered", answered, enough)
	}
}
