package proxy

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// Queries that come together, before there is a connection of HTTP/2, have one opened for all of them.
func TestOneConnectionIsOpenedForAll(t *testing.T) {
	h := &holder{release: make(chan struct{})}
	p := h.proxy(t, transport.HTTPS)
	askMany(t, p, 100)
	if n := h.opened.Load(); n != 1 {
		t.Fatalf("%d connections for those that came together", n)
	}
}

// Who waits for a connection learns why there is none, and the next one tries anew.
func TestConnectionThatIsRefusedToAll(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p := proxyTo(t, l.Addr().String(), transport.HTTPS)
	p.SetReadTimeout(time.Minute)
	for range 2 {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := ask(p, "www.example.org.", Options{}); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

// A connection that is not there within a second is not waited for: another one is opened.
func TestSecondConnectionAfterASecond(t *testing.T) {
	h := &holder{release: make(chan struct{})}
	to := h.proxy(t, transport.HTTPS)
	r := newRelay(t, to.hostPort)
	p := proxyTo(t, r.Addr().String(), transport.HTTPS)
	p.SetTLSConfig(to.transport.GetTLSConfig())
	p.SetReadTimeout(time.Minute)
	r.mu.Lock()
	r.deaf.Store(true)
	r.mu.Unlock()
	stuck := make(chan error, 1)
	go func() {
		_, err := ask(p, "www.example.org.", Options{})
		stuck <- err
	}()
	eventually.Holds(t, "a connection", func() bool { return r.opened.Load() == 1 })
	r.forget()
	if _, err := ask(p, "www.example.org.", Options{}); err != nil || r.opened.Load() != 2 {
		t.Errorf("%d connections, %v", r.opened.Load(), err)
	}
	if err := <-stuck; err != nil {
		t.Error("who waited for the first connection does not use the second one:", err)
	}
}
