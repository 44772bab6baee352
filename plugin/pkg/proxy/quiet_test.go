package proxy

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// Once all is closed that was idle, nothing is left that could ever send: no socket, no connection, and a clock that
// will not look any more.
func TestIdleEngineSleeps(t *testing.T) {
	var udp, tcp atomic.Int64
	overUDP := proxyTo(t, udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		udp.Add(1)
		send(replyTo(q))
	}), transport.DNS)
	overStream := proxyTo(t, tcpUpstream(t, func(conn net.Conn) {
		for {
			q, err := readFrame(conn)
			if err != nil {
				return
			}
			tcp.Add(1)
			conn.Write(frame(replyTo(q)))
		}
	}), transport.DNS)
	for p, opts := range map[*Proxy]Options{overUDP: {}, overStream: overTCP} {
		p.SetExpire(200 * time.Millisecond)
		p.Start(10 * time.Millisecond) // probes, if any were needed
		for range 20 {
			if _, err := ask(p, "www.example.org.", opts); err != nil {
				t.Fatal(err)
			}
		}
		e := &p.engine
		eventually.Holds(t, "the clock sleeps for ever", func() bool {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.udp.n == 0 && len(e.streams.conns) == 0 && e.wheel.n == 0 && e.reapAt == never && e.wakeAt == never
		})
		p.prober.mu.Lock()
		running := p.prober.running
		p.prober.mu.Unlock()
		if running {
			t.Error("a healthy upstream is probed")
		}
	}
	time.Sleep(300 * time.Millisecond)
	if u, s := udp.Load(), tcp.Load(); u != 20 || s != 20 {
		t.Errorf("the upstreams saw %d and %d queries of 20", u, s)
	}
}

// 10,000 queries a second over TCP, to an upstream that closes idle connections all the time, go over four connections,
// and none fails.
func TestTCPUnderLoad(t *testing.T) {
	const total, askers = 10000, 200
	var mu sync.Mutex
	type state struct{ asked, answered int }
	conns := map[net.Conn]*state{}
	most := 0
	addr := tcpUpstream(t, func(conn net.Conn) {
		var own state
		mu.Lock()
		conns[conn] = &own
		most = max(most, len(conns))
		mu.Unlock()
		defer func() {
			mu.Lock()
			delete(conns, conn)
			mu.Unlock()
		}()
		for {
			q, err := readFrame(conn)
			if err != nil {
				return
			}
			mu.Lock()
			own.asked++
			mu.Unlock()
			conn.Write(frame(replyTo(q)))
			mu.Lock()
			own.answered++
			mu.Unlock()
		}
	})
	p := proxyTo(t, addr, transport.DNS)
	stop := make(chan struct{})
	var closer sync.WaitGroup
	closed := 0
	closer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				mu.Lock()
				for c, s := range conns {
					if s.asked > 0 && s.answered == s.asked { // it is idle, as far as its upstream knows
						c.Close()
						closed++
					}
				}
				mu.Unlock()
			}
		}
	})
	began := time.Now()
	var wg sync.WaitGroup
	for range askers {
		wg.Go(func() {
			for range total / askers {
				if _, err := ask(p, "www.example.org.", overTCP); err != nil {
					t.Error(err)
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	close(stop)
	closer.Wait()
	took := time.Since(began)
	t.Logf("%d queries in %v, %d connections closed, %d at a time", total, took, closed, most)
	if closed < 4 || most > 2*maxStreams { // the upstream notes the end of old ones a little late
		t.Errorf("%d connections were closed, %d were open at a time", closed, most)
	}
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	if n := len(p.engine.streams.conns); n > maxStreams+spareStreams {
		t.Errorf("%d connections at the end", n)
	}
}
