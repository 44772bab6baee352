package proxy

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// Queries over HTTP/3 that find no stream for long are asked on more connections, at most so many.
func TestDoH3FewStreams(t *testing.T) {
	const few, all = 2, 10
	var conns, arrived atomic.Int64
	together := make(chan struct{}) // closed when all are there
	p := http3Upstream(t, &quic.Config{MaxIncomingStreams: few}, func(*quic.Conn) { conns.Add(1) }, func(w http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) == all {
			close(together)
		}
		<-together
		answerHTTP(w, r)
	})
	p.SetReadTimeout(20 * time.Second)
	patient(p)
	askMany(t, p, all)
	if n := conns.Load(); n < all/few || n > maxQUICLinks {
		t.Errorf("%d connections", n)
	}
}

// One that answers nobody, and takes few streams, does not get more connections for that than any other.
func TestDoH3FewStreamsOfTheSilent(t *testing.T) {
	var conns atomic.Int64
	p := http3Upstream(t, &quic.Config{MaxIncomingStreams: 1}, func(*quic.Conn) { conns.Add(1) }, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})
	p.SetReadTimeout(2 * time.Second)
	askInVain(t, p, 5)
	if n := conns.Load(); n == 0 || n > maxLive {
		t.Errorf("%d connections", n)
	}
}

// One that closes all but its first connection answers on that.
func TestDoH3OneConnection(t *testing.T) {
	var conns atomic.Int64
	hold := make(chan struct{})
	p := http3Upstream(t, &quic.Config{MaxIncomingStreams: 1}, func(c *quic.Conn) {
		if conns.Add(1) > 1 {
			c.CloseWithError(0x107, "") // H3_EXCESSIVE_LOAD
		}
	}, func(w http.ResponseWriter, r *http.Request) {
		<-hold
		answerHTTP(w, r)
	})
	p.SetReadTimeout(20 * time.Second)
	patient(p)
	began := time.Now()
	time.AfterFunc(1500*time.Millisecond, func() { close(hold) })
	askMany(t, p, 10)
	// Each second one is tried, by the library perhaps twice, and then once more.
	if n := conns.Load(); n < 2 || n > 4*(1+int64(time.Since(began).Nanoseconds()/slowDial)) {
		t.Errorf("%d connections in %v", n, time.Since(began))
	}
}
