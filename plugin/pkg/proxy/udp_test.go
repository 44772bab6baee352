package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/udpsockets"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// bothSockets runs a test with the system's own sockets and with the portable ones.
func bothSockets(t *testing.T, run func(t *testing.T, proxyTo func(addr string) *Proxy)) {
	for name, sockets := range map[string]func() (udpsockets.Set, error){"system": udpsockets.New, "portable": udpsockets.NewPortable} {
		t.Run(name, func(t *testing.T) {
			run(t, func(addr string) *Proxy {
				p := proxyTo(t, addr, transport.DNS)
				p.engine.udp.make = sockets
				return p
			})
		})
	}
}

// Nobody can guess port and id of the next query.
func TestPortsAndIDs(t *testing.T) {
	bothSockets(t, func(t *testing.T, proxyTo func(string) *Proxy) {
		var mu sync.Mutex
		var ports, ids []int
		addr := udpUpstream(t, func(q []byte, from *net.UDPAddr, send func([]byte)) {
			mu.Lock()
			ports, ids = append(ports, from.Port), append(ids, int(q[0])<<8|int(q[1]))
			mu.Unlock()
			send(replyTo(q))
		})
		p := proxyTo(addr)
		for i := range 1000 {
			if _, err := ask(p, "www.example.org.", Options{}); err != nil {
				t.Fatal(i, err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		fewest := map[string]int{"ids": 900, "ports": min(900, int(socketBudget.limit)*9/10)} // a port for each socket that may be open
		for what, drawn := range map[string][]int{"ports": ports, "ids": ids} {
			distinct, up, next := map[int]bool{}, 0, 0
			for i, n := range drawn {
				distinct[n] = true
				if i > 0 && n > drawn[i-1] {
					up++
				}
				if i > 0 && n-drawn[i-1] > -16 && n-drawn[i-1] < 16 {
					next++
				}
			}
			if len(distinct) < fewest[what] || up < 400 || up > 600 || next > 30 {
				t.Errorf("%s: %d distinct, %d times upwards, %d times near by", what, len(distinct), up, next)
			}
		}
	})
}

// When no more sockets may be opened, queries share them, also many at a time.
func TestSocketsAreShared(t *testing.T) {
	defer func(b int64) { socketBudget.limit = b }(socketBudget.limit)
	socketBudget.limit = 0 // leaves minSockets
	bothSockets(t, func(t *testing.T, proxyTo func(string) *Proxy) {
		var ports sync.Map
		addr := udpUpstream(t, func(q []byte, from *net.UDPAddr, send func([]byte)) {
			ports.Store(from.Port, true)
			time.AfterFunc(20*time.Millisecond, func() { send(replyTo(q)) })
		})
		p := proxyTo(addr)
		var wg sync.WaitGroup
		for i := range 500 {
			wg.Go(func() {
				m, err := ask(p, fmt.Sprintf("n%d.example.org.", i), Options{})
				if err != nil || len(m.Answer) != 1 {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		n := 0
		ports.Range(func(any, any) bool { n++; return true })
		if n != minSockets {
			t.Errorf("%d ports, want %d", n, minSockets)
		}
	})
}

// However few sockets there may be, their ports change.
func TestSocketsWearOut(t *testing.T) {
	defer func(b int64) { socketBudget.limit = b }(socketBudget.limit)
	socketBudget.limit = 0 // leaves minSockets
	bothSockets(t, func(t *testing.T, proxyTo func(string) *Proxy) {
		ports := map[int]int{}
		var mu sync.Mutex
		addr := udpUpstream(t, func(q []byte, from *net.UDPAddr, send func([]byte)) {
			mu.Lock()
			ports[from.Port]++
			mu.Unlock()
			send(replyTo(q))
		})
		p := proxyTo(addr)
		for range minSockets * wornOut * 5 / 4 {
			if _, err := ask(p, "www.example.org.", Options{}); err != nil {
				t.Fatal(err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if len(ports) <= minSockets || len(ports) > 2*minSockets {
			t.Errorf("%d ports", len(ports))
		}
		over := 0
		for _, n := range ports {
			if n > wornOut {
				over++
			}
		}
		if over > len(ports)/10 { // some are given twice, by chance
			t.Errorf("%d of %d ports carried more than %d queries", over, len(ports), wornOut)
		}
	})
}

// Of 100,000 forged replies none is taken, and the true one behind them is.
func TestForgedReplies(t *testing.T) {
	const upstreams, queries, forgeries = 5, 20, 1000
	var wg sync.WaitGroup
	for range upstreams {
		wg.Go(func() { askAmongForgeries(t, queries, forgeries) })
	}
	wg.Wait()
}

// askAmongForgeries asks an upstream whose replies stand behind as many forgeries each.
func askAmongForgeries(t *testing.T, queries, forgeries int) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	addr := conn.LocalAddr().String()
	countOf := func(v replies.Verdict) float64 {
		return testutil.ToFloat64(repliesIgnored.WithLabelValues("test", addr, v.String()))
	}
	counted := func() (all float64) {
		for v := replies.TooShort; v <= replies.Malformed; v++ {
			all += countOf(v)
		}
		return all
	}
	var sent atomic.Int64
	serveDatagrams(t, conn, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		random := rand.New(rand.NewPCG(uint64(q[0])<<8|uint64(q[1]), 1))
		lost := 0.0 // as it seems
		for range forgeries {
			send(forgery(q, random))
			if sent.Add(1)%20 > 0 {
				continue
			}
			under := func() float64 { return float64(sent.Load()) - counted() - lost }
			for end := time.Now().Add(time.Second); under() > 100; time.Sleep(time.Millisecond) { // less than a socket's buffer holds
				if time.Now().After(end) {
					lost += under()
				}
			}
		}
		send(replyTo(q))
	})
	p := proxyTo(t, addr, transport.DNS)
	p.SetReadTimeout(time.Minute)
	for i := range queries {
		m, err := ask(p, "www.example.org.", Options{})
		if err != nil {
			t.Error(i, err)
			return
		}
		if a := m.Answer[0].(*dns.A).A.String(); a != "192.0.2.1" {
			t.Errorf("query %d: a forged reply was taken: %s", i, a)
		}
	}
	for v := replies.TooShort; v < replies.Malformed; v++ {
		if countOf(v) == 0 {
			t.Errorf("none is counted as %s", v)
		}
	}
	if all := int64(queries * forgeries); sent.Load() != all || counted() < 0.9*float64(all) { // what comes after the socket was closed or emptied is not seen
		t.Errorf("%v counted of %d", counted(), sent.Load())
	}
}

// forgery is one of those that somebody may send who does not see the query q.
func forgery(q []byte, random *rand.Rand) []byte {
	b := replyTo(q)
	b[len(b)-1] = 66 // the forger's address
	switch random.IntN(8) {
	case 0, 1:
		b[0], b[1] = byte(random.Uint32()), b[1]^byte(1+random.IntN(255))
	case 2:
		b[13] ^= 1 // name
	case 3:
		b[len(q)-3] = 28 // type
	case 4:
		b[len(q)-1] = 3 // class
	case 5:
		b[2] &^= 0x80
	case 6:
		b = b[:random.IntN(len(q))]
	case 7:
		for i := 2; i < len(b); i++ {
			b[i] = byte(random.Uint32())
		}
	}
	return b
}

func TestCutShortBecomesTC(t *testing.T) {
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		b := replyTo(q)
		send(b[:len(b)-2])
	})
	m, err := ask(proxyTo(t, addr, transport.DNS), "www.example.org.", Options{})
	if err != nil || !m.Truncated || len(m.Answer) != 0 || m.Question[0].Name != "www.example.org." {
		t.Error(m, err)
	}
}

func TestNobodyListens(t *testing.T) {
	bothSockets(t, func(t *testing.T, proxyTo func(string) *Proxy) {
		p := proxyTo(loopback.Addr())
		for range 50 {
			_, err := ask(p, "www.example.org.", Options{})
			if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "connection refused") {
				t.Fatal(err)
			}
		}
	})
}

func TestSilence(t *testing.T) {
	addr := udpUpstream(t, func([]byte, *net.UDPAddr, func([]byte)) {})
	p := proxyTo(t, addr, transport.DNS)
	p.SetReadTimeout(100 * time.Millisecond)
	began := time.Now()
	_, err := ask(p, "www.example.org.", Options{})
	if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(err.Error(), "read udp 127.0.0.1:") || !strings.HasSuffix(err.Error(), "->"+addr+": i/o timeout") {
		t.Error(err)
	}
	if d := time.Since(began); d < 100*time.Millisecond || d > time.Second {
		t.Errorf("took %v", d)
	}

	p.SetReadTimeout(10 * time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	began = time.Now()
	if _, err := askCtx(ctx, p, "www.example.org.", Options{}); err == nil {
		t.Error("an answer")
	}
	if d := time.Since(began); d > time.Second {
		t.Errorf("with a deadline it took %v", d)
	}
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := askCtx(ctx, p, "www.example.org.", Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A reply that comes too late does no harm to the next queries.
func TestLateReply(t *testing.T) {
	var n atomic.Int64
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		if n.Add(1)%2 == 1 {
			time.AfterFunc(time.Second, func() { send(replyTo(q)) })
			return
		}
		send(replyTo(q))
	})
	p := proxyTo(t, addr, transport.DNS)
	p.SetReadTimeout(500 * time.Millisecond)
	for i := range 8 {
		_, err := ask(p, "www.example.org.", Options{})
		if late := i%2 == 0; (err != nil) != late {
			t.Fatal(i, err)
		}
	}
}

func (e *engine) openSockets() (all, idle int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.udp.n, e.udp.idle
}

func TestSocketsAreClosed(t *testing.T) {
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) { send(replyTo(q)) })
	before := socketBudget.used.Load()
	for name, tc := range map[string]struct {
		set  func(*Proxy)
		left int // at once
	}{
		"expire":         {func(p *Proxy) { p.SetExpire(time.Second) }, 20},
		"max_age":        {func(p *Proxy) { p.SetMaxAge(time.Second) }, 20},
		"max_idle_conns": {func(p *Proxy) { p.SetMaxIdleConns(3); p.SetExpire(time.Second) }, 3},
		"Stop":           {func(p *Proxy) {}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewProxy("test", addr, transport.DNS)
			tc.set(p)
			for range 20 {
				if _, err := ask(p, "www.example.org.", Options{}); err != nil {
					t.Fatal(err)
				}
			}
			if all, idle := p.engine.openSockets(); all != tc.left || idle != tc.left {
				t.Errorf("%d sockets, %d idle, want %d", all, idle, tc.left)
			}
			if name == "Stop" {
				p.Stop()
			}
			eventually.Holds(t, "all are closed", func() bool { all, idle := p.engine.openSockets(); return all == 0 && idle == 0 })
			p.Stop()
			if _, err := ask(p, "www.example.org.", Options{}); err == nil || err.Error() != ErrTransportStopped {
				t.Error(err)
			}
			if used := socketBudget.used.Load(); used != before {
				t.Errorf("%d sockets of the budget are not given back", used-before)
			}
		})
	}
}

// Stop ends what is under way.
func TestStopEndsQueries(t *testing.T) {
	bothSockets(t, func(t *testing.T, proxyTo func(string) *Proxy) {
		asked := make(chan bool, 50)
		p := proxyTo(udpUpstream(t, func([]byte, *net.UDPAddr, func([]byte)) { asked <- true }))
		errs := make(chan error)
		for range 50 {
			go func() {
				_, err := ask(p, "www.example.org.", Options{})
				errs <- err
			}()
		}
		for range 50 {
			<-asked
		}
		p.Stop()
		for range 50 {
			if err := <-errs; !errors.Is(err, errStopped) {
				t.Fatal(err)
			}
		}
	})
}

func TestSourceAddress(t *testing.T) {
	bothSockets(t, func(t *testing.T, proxyTo func(string) *Proxy) {
		from := make(chan string, 1)
		p := proxyTo(udpUpstream(t, func(q []byte, a *net.UDPAddr, send func([]byte)) {
			from <- a.IP.String()
			send(replyTo(q))
		}))
		p.SetLocalAddress(net.ParseIP("127.0.0.9"))
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
		if got := <-from; got != "127.0.0.9" {
			t.Error(got)
		}
	})
}

func TestConnectRefuses(t *testing.T) {
	p := proxyTo(t, "127.0.0.1:1", "carrier-pigeon")
	if _, err := ask(p, "www.example.org.", Options{}); err == nil || err.Error() != "transport carrier-pigeon not supported to proxy" {
		t.Error(err)
	}
	p = proxyTo(t, "127.0.0.1:1", transport.DNS)
	if _, err := ask(p, "www.example.org.", Options{ForceTCP: true}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
	if _, err := ask(p, "www..example.org.", Options{}); err == nil {
		t.Error("a name that cannot be packed was asked")
	}
}
