package udp

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/reusegroup"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

// laneCounter tells which loops serve. Queries take the processor for as long as takes says.
type laneCounter struct {
	coretest.Lane
	takes time.Duration

	mu    sync.Mutex
	lanes map[*eventloop.Loop]int
}

func (h *laneCounter) WireSelf() plugin.Handler { return h }

func (h *laneCounter) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	h.mu.Lock()
	if h.lanes == nil {
		h.lanes = map[*eventloop.Loop]int{}
	}
	h.lanes[q.Loop()]++
	h.mu.Unlock()
	for end := time.Now().Add(h.takes); time.Now().Before(end); {
	}
	return h.Lane.ServeWire(ctx, w, q)
}

// seen is how many loops have served since the last call.
func (h *laneCounter) seen() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.lanes)
	clear(h.lanes)
	return n
}

// grouped is a server that has two sockets at least, and their group.
func grouped(t *testing.T, h *laneCounter) (addr string, s *reusegroup.Group) {
	t.Helper()
	if runtime.GOMAXPROCS(0) < 2 {
		old := runtime.GOMAXPROCS(2)
		t.Cleanup(func() { runtime.GOMAXPROCS(old) })
	}
	server := serving(t, h, Options{})
	s = server.handed.group
	if s == nil {
		t.Fatal("there is no group")
	}
	return server.addr, s
}

// askFromMany asks from so many sockets that, spread, each loop has some.
func askFromMany(t *testing.T, addr string) {
	t.Helper()
	askForLabel(t, addr, "www")
}

func askForLabel(t *testing.T, addr, label string) {
	t.Helper()
	askPaced(t, addr, label, 0)
}

// askPaced is askForLabel with pauses between the queries.
func askPaced(t *testing.T, addr, label string, pause time.Duration) {
	t.Helper()
	for i := range max(64, 24*runtime.GOMAXPROCS(0)) {
		time.Sleep(pause)
		c := &dns.Client{Timeout: clients.AskTime}
		if _, _, err := c.Exchange(new(dns.Msg).SetQuestion(fmt.Sprintf("%s.x%d.", label, i), dns.TypeA), addr); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOneLoopServesWhatItCan(t *testing.T) {
	h := new(laneCounter)
	addr, s := grouped(t, h)
	askFromMany(t, addr)
	if n := h.seen(); n != 1 {
		t.Errorf("%d loops serve, consolidated", n)
	}
	s.Spread()
	if s.Consolidated() {
		t.Fatal("still consolidated")
	}
	askFromMany(t, addr)
	if n := h.seen(); n != runtime.GOMAXPROCS(0) {
		t.Errorf("%d loops serve, spread", n)
	}
	eventually.Holds(t, "it is consolidated again", func() bool {
		time.Sleep(10 * time.Millisecond)
		askFromMany(t, addr)
		return s.Consolidated()
	})
	h.seen()
	askFromMany(t, addr)
	if n := h.seen(); n != 1 {
		t.Errorf("%d loops serve, consolidated again", n)
	}
}

// Queries that go to workers are not consolidated; those that wait for exchanges are.
func TestWorkersAreFedByAll(t *testing.T) {
	exec.AllowInline = false
	t.Cleanup(func() { exec.AllowInline = true }) // after the server has ended
	h := &laneCounter{Lane: coretest.Lane{Held: make(chan struct{})}}
	close(h.Held)
	addr, s := grouped(t, h)
	// Paced, as a process that is busy is spread, too, and this one asks as well.
	const rounds, pause = 4, time.Millisecond
	for _, label := range []string{"www", "hold"} {
		for range rounds {
			askPaced(t, addr, label, pause)
		}
		if !s.Consolidated() {
			t.Errorf("spread by %s", label)
		}
	}
	for _, label := range []string{"unpack", "block"} {
		eventually.Holds(t, "it is spread by "+label, func() bool {
			askForLabel(t, addr, label)
			return !s.Consolidated()
		})
		for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
			if askForLabel(t, addr, label); s.Consolidated() {
				t.Fatalf("consolidated again, although queries for %s go to workers", label)
			}
		}
		eventually.Holds(t, "it is consolidated again", func() bool {
			time.Sleep(50 * time.Millisecond) // or this process, which the test is, too, looks busy
			askFromMany(t, addr)
			return s.Consolidated()
		})
	}
}

// TestTooMuchForOneLoop has so much come that one loop has no pause. All is answered.
func TestTooMuchForOneLoop(t *testing.T) {
	h := &laneCounter{takes: 500 * time.Microsecond}
	addr, s := grouped(t, h)
	const askers, each = 16, 10
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for i := range askers {
		wg.Go(func() {
			c, err := dns.Dial("udp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for round := 0; ; round++ {
				select {
				case <-enough:
					return
				default:
				}
				c.SetDeadline(time.Now().Add(clients.AskTime))
				for j := range each {
					m := new(dns.Msg).SetQuestion(fmt.Sprintf("www.x%d.", i), dns.TypeA)
					m.Id = uint16(round*each + j)
					if err := c.WriteMsg(m); err != nil {
						t.Error(err)
						return
					}
				}
				for range each {
					if _, err := c.ReadMsg(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	defer wg.Wait()
	defer close(enough)
	eventually.Holds(t, "it is spread", func() bool { return !s.Consolidated() })
	h.seen()
	eventually.Holds(t, "others serve, too", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.lanes) > 1
	})
}

// What the system cannot be told of is left alone, as is all without the flag.
func TestNotConsolidated(t *testing.T) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if reusegroup.New(conn, false) != nil {
		t.Error("a socket that has no group is consolidated")
	}

	Consolidate = false
	defer func() { Consolidate = true }()
	h := new(laneCounter)
	server := serving(t, h, Options{})
	askFromMany(t, server.addr)
	if n := h.seen(); n != runtime.GOMAXPROCS(0) {
		t.Errorf("%d loops serve", n)
	}
}

// When the last server of this process has gone, those of others at its address are not steered.
func TestOthersGoOnSpread(t *testing.T) {
	h := new(laneCounter)
	server := serving(t, h, Options{})
	askFromMany(t, server.addr)
	var got [2]atomic.Int64
	var wg sync.WaitGroup
	var conns []net.PacketConn
	for i := range got {
		c, err := reuseport.ListenPacket("udp", server.addr)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		wg.Go(func() {
			b := make([]byte, 100)
			for {
				if _, _, err := c.ReadFrom(b); err != nil {
					return
				}
				got[i].Add(1)
			}
		})
	}
	server.end()
	for range 64 {
		c, err := net.Dial("udp", server.addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte("x"))
		c.Close()
	}
	eventually.Holds(t, "all have come", func() bool { return got[0].Load()+got[1].Load() == 64 })
	for _, c := range conns {
		c.Close()
	}
	wg.Wait()
	if got[0].Load() == 0 || got[1].Load() == 0 {
		t.Error("one socket of the others gets all")
	}
}
