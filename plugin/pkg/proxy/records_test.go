package proxy

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// Queries that go out together have a TLS record each: there are servers that answer the first one of a record only.
func TestEachQueryHasItsRecord(t *testing.T) {
	const queries = 40
	server, roots := authority(t)
	waiting := make(chan struct{})
	server = server.Clone()
	server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		<-waiting // so that queries gather
		return nil, nil
	}
	var answered, together atomic.Int64
	addr := tcpUpstream(t, func(conn net.Conn) {
		s := tls.Server(conn, server)
		b := make([]byte, 1<<16)
		for {
			n, err := s.Read(b) // at most one record
			if err != nil {
				return
			}
			if n != frameLen(b[:n]) {
				together.Add(1)
				return
			}
			answered.Add(1)
			s.Write(frame(replyTo(b[2:n])))
		}
	})
	p := proxyTo(t, addr, transport.TLS)
	p.SetTLSConfig(&tls.Config{RootCAs: roots})
	p.SetReadTimeout(time.Minute)
	var wg sync.WaitGroup
	for range queries {
		wg.Go(func() {
			if _, err := ask(p, "www.example.org.", Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	eventually.Holds(t, "all queries wait", func() bool {
		p.engine.mu.Lock()
		defer p.engine.mu.Unlock()
		n := 0
		for _, c := range p.engine.streams.conns {
			n += c.pending.n
		}
		return n == queries
	})
	close(waiting)
	wg.Wait()
	if answered.Load() != queries || together.Load() != 0 {
		t.Errorf("%d queries had a record of their own, %d records had several", answered.Load(), together.Load())
	}
}
