package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/packed"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

var overTCP = Options{ForceTCP: true}

// Many queries share few connections, replies come in any order, and slow ones hold nobody.
func TestPipelining(t *testing.T) {
	var conns atomic.Int64
	quickOnesDone := make(chan struct{})
	addr := tcpUpstream(t, func(conn net.Conn) {
		conns.Add(1)
		var mu sync.Mutex
		for {
			q, err := readFrame(conn)
			if err != nil {
				return
			}
			go func() {
				if bytes.Contains(q, []byte("slow")) {
					<-quickOnesDone
				}
				mu.Lock()
				defer mu.Unlock()
				conn.Write(frame(replyTo(q)))
			}()
		}
	})
	p := proxyTo(t, addr, transport.DNS)
	p.SetReadTimeout(time.Minute)
	var slow, quick sync.WaitGroup
	for i := range 300 {
		slow.Go(func() {
			if _, err := ask(p, fmt.Sprintf("slow%d.example.org.", i), overTCP); err != nil {
				t.Error(err)
			}
		})
		quick.Go(func() {
			name := fmt.Sprintf("quick%d.example.org.", i)
			m, err := ask(p, name, overTCP)
			if err != nil || m.Question[0].Name != name {
				t.Error(m, err)
			}
		})
	}
	quick.Wait()
	close(quickOnesDone) // they did not wait for the others
	slow.Wait()
	if n := conns.Load(); n > maxStreams+spareStreams { // a machine that stands still for a while is silent
		t.Errorf("%d connections", n)
	}
}

// An upstream that closes its connections whenever it likes, also under queries, fails none.
func TestClosedConnectionsFailNoQuery(t *testing.T) {
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	var total, most int
	addr := tcpUpstream(t, func(conn net.Conn) {
		mu.Lock()
		open[conn] = true
		total++
		most = max(most, len(open))
		mu.Unlock()
		echo(conn)
		mu.Lock()
		delete(open, conn)
		mu.Unlock()
	})
	p := proxyTo(t, addr, transport.DNS)
	p.engine.streams.turns.full = math.MaxInt64 // a busy machine holds up what echo answers in turn
	stop := make(chan bool)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(250 * time.Millisecond): // a query is tried twice, and may take as long as that on a busy machine
				mu.Lock()
				for c := range open {
					c.Close()
					delete(open, c)
				}
				mu.Unlock()
			}
		}
	})
	var asked atomic.Int64
	var askers sync.WaitGroup
	for range 20 {
		askers.Go(func() {
			for end := time.Now().Add(2 * time.Second); time.Now().Before(end); asked.Add(1) {
				if _, err := ask(p, "www.example.org.", overTCP); err != nil {
					t.Error(asked.Load(), err)
					return
				}
			}
		})
	}
	askers.Wait()
	close(stop)
	wg.Wait()
	if total < 8 || most > 5 {
		t.Errorf("%d connections in all, %d at a time", total, most)
	}
	t.Logf("%d queries, %d connections, at most %d at a time", asked.Load(), total, most)
}

// A connection that was closed while it was idle is not even noticed.
func TestIdleClosed(t *testing.T) {
	addr := tcpUpstream(t, func(conn net.Conn) {
		if q, err := readFrame(conn); err == nil {
			conn.Write(frame(replyTo(q)))
			time.Sleep(5 * time.Millisecond)
		}
	})
	p := proxyTo(t, addr, transport.DNS)
	for i := range 50 {
		if _, err := ask(p, "www.example.org.", overTCP); err != nil {
			t.Fatal(i, err)
		}
		time.Sleep(time.Duration(i%10) * time.Millisecond)
	}
}

// An upstream that takes one query on each connection serves many at a time, once that is known.
func TestOneQueryPerConnection(t *testing.T) {
	addr := tcpUpstream(t, func(conn net.Conn) {
		if q, err := readFrame(conn); err == nil {
			time.Sleep(time.Millisecond)
			conn.Write(frame(replyTo(q)))
			conn.(*net.TCPConn).CloseWrite()
			readFrame(conn)
		}
	})
	p := proxyTo(t, addr, transport.DNS)
	for round := range 3 {
		var wg sync.WaitGroup
		var failed atomic.Int64
		for range 40 {
			wg.Go(func() {
				if _, err := ask(p, "www.example.org.", overTCP); err != nil {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		if n := failed.Load(); round > 0 && n > 0 {
			t.Errorf("round %d: %d queries failed", round, n)
		}
	}
}

func TestStreamErrors(t *testing.T) {
	closing := tcpUpstream(t, func(conn net.Conn) { readFrame(conn) })
	silent := tcpUpstream(t, func(conn net.Conn) {
		for {
			if _, err := readFrame(conn); err != nil {
				return
			}
		}
	})
	for name, tc := range map[string]struct {
		change func([]byte) []byte
		want   error
	}{
		"another question": {func(b []byte) []byte { b[13] ^= 1; return b }, ErrMismatch},
		"a query":          {func(b []byte) []byte { b[2] &^= 0x80; return b }, ErrMismatch},
		"cut short":        {func(b []byte) []byte { return b[:len(b)-1] }, ErrMismatch},
		"a header":         {func(b []byte) []byte { return b[:12] }, ErrMismatch},
	} {
		addr := tcpUpstream(t, func(conn net.Conn) {
			q, _ := readFrame(conn)
			conn.Write(frame([]byte{1}))
			conn.Write(frame(nil))
			other := append([]byte(nil), q...)
			other[0]++
			conn.Write(frame(replyTo(other)))
			conn.Write(frame(tc.change(replyTo(q))))
			readFrame(conn)
		})
		if _, err := ask(proxyTo(t, addr, transport.DNS), "www.example.org.", overTCP); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ask(proxyTo(t, closing, transport.DNS), "www.example.org.", overTCP); err == nil || !strings.HasPrefix(err.Error(), "read tcp 127.0.0.1:") {
		t.Errorf("a connection that is closed at once: %v", err)
	}
	p := proxyTo(t, silent, transport.DNS)
	p.SetReadTimeout(50 * time.Millisecond)
	began := time.Now()
	if _, err := ask(p, "www.example.org.", overTCP); !errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(err.Error(), "read tcp 127.0.0.1:") {
		t.Error(err)
	}
	if d := time.Since(began); d > time.Second {
		t.Errorf("silence took %v", d)
	}
}

// A connection on which nothing comes any more is given up.
func TestDeadConnection(t *testing.T) {
	var conns atomic.Int64
	addr := tcpUpstream(t, func(conn net.Conn) {
		if conns.Add(1) > 1 {
			echo(conn)
			return
		}
		q, _ := readFrame(conn)
		conn.Write(frame(replyTo(q)))
		for {
			if _, err := readFrame(conn); err != nil {
				return
			}
		}
	})
	p := proxyTo(t, addr, transport.DNS)
	p.SetReadTimeout(500 * time.Millisecond)
	for i, fails := range []bool{false, true, false, false} {
		if _, err := ask(p, "www.example.org.", overTCP); (err != nil) != fails {
			t.Errorf("query %d: %v", i, err)
		}
	}
}

func (e *engine) openConns() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.streams.conns)
}

func TestConnectionsAreClosed(t *testing.T) {
	for name, set := range map[string]func(*Proxy){
		"expire":         func(p *Proxy) { p.SetExpire(100 * time.Millisecond) },
		"max_age":        func(p *Proxy) { p.SetMaxAge(100 * time.Millisecond) },
		"max_idle_conns": func(p *Proxy) { p.SetMaxIdleConns(1) },
	} {
		var open atomic.Int64
		addr := tcpUpstream(t, func(conn net.Conn) {
			open.Add(1)
			for {
				q, err := readFrame(conn)
				if err != nil {
					break
				}
				time.Sleep(20 * time.Millisecond)
				conn.Write(frame(replyTo(q)))
			}
			open.Add(-1)
		})
		p := proxyTo(t, addr, transport.DNS)
		set(p)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := ask(p, "www.example.org.", overTCP); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		left := int64(0)
		if name == "max_idle_conns" {
			left = 1
		}
		eventually.Holds(t, name, func() bool { return open.Load() == left && p.engine.openConns() == int(left) })
	}
}

// Whatever an upstream sends on a connection, the proxy lives, and says no wrong answers.
func FuzzStream(f *testing.F) {
	f.Add([]byte{0, 1, 1})
	f.Add(frame(packed.Message(f, "www.example.org.", dns.TypeA, packed.Answer("www.example.org. 300 IN A 192.0.2.1"))))
	f.Fuzz(func(t *testing.T, sent []byte) {
		client, server := net.Pipe()
		e := &proxyTo(t, "127.0.0.1:1", transport.DNS).engine
		c := newStreamConn(e, e.now())
		query := packed.Message(t, "www.example.org.", dns.TypeA)
		x := &Exchange{Query: query, proxy: e.proxy}
		x.Owner = enderFunc(func(x *Exchange) {
			if x.Err == nil && (len(x.Reply) < len(query) || !wire.EqualFold(x.Reply[12:len(query)], query[12:])) {
				t.Errorf("taken for a reply: %x", x.Reply)
			}
		})
		e.mu.Lock()
		c.pending.add(x, e.random)
		x.on, c.open, c.conn = c, true, client
		e.streams.conns = append(e.streams.conns, c)
		e.unlock()
		for i := 0; i+4 <= len(sent); i += 64 { // its id can be right
			sent[i+2], sent[i+3] = byte(x.id>>8), byte(x.id)
		}
		go func() {
			server.Write(sent)
			server.Close()
		}()
		c.read(client)
		client.Close()
		e.mu.Lock()
		if x.on != nil {
			e.take(x, e.now())
		}
		e.unlock()
	})
}

type enderFunc func(*Exchange)

func (f enderFunc) EndExchange(x *Exchange) { f(x) }

// An upstream that closed connections after one reply, as one does that is started again and again, gets many queries on each once it
// answers more.
func TestUpstreamThatClosesNoMore(t *testing.T) {
	p := proxyTo(t, tcpUpstream(t, func(conn net.Conn) {
		for {
			q, err := readFrame(conn)
			if err != nil {
				return
			}
			conn.Write(frame(replyTo(q)))
		}
	}), transport.DNS)
	pool := &p.engine.streams
	for range hastyEnough {
		pool.judge(&streamConn{answered: 1})
	}
	if !pool.oneOff {
		t.Fatal("closing after one reply goes unnoticed")
	}
	for range 3 {
		if _, err := ask(p, "www.example.org.", overTCP); err != nil {
			t.Fatal(err)
		}
	}
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	if pool.oneOff || pool.hasty != 0 {
		t.Error("each query gets a connection of its own for ever")
	}
}
