package dnsserver

import (
	"context"
	"fmt"
	"math"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// laneCounter tells which loops serve. Queries take the processor for as long as takes says.
type laneCounter struct {
	laneHandler
	takes time.Duration

	mu    sync.Mutex
	lanes map[*wire.Lane]int
}

func (h *laneCounter) WireSelf() plugin.Handler { return h }

func (h *laneCounter) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	h.mu.Lock()
	if h.lanes == nil {
		h.lanes = map[*wire.Lane]int{}
	}
	h.lanes[q.Lane()]++
	h.mu.Unlock()
	for end := time.Now().Add(h.takes); time.Now().Before(end); {
	}
	return h.laneHandler.ServeWire(ctx, w, q)
}

// seen is how many loops have served since the last call.
func (h *laneCounter) seen() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.lanes)
	clear(h.lanes)
	return n
}

// steered is a server that has two sockets at least, and its steering.
func steered(t *testing.T, h *laneCounter) (addr string, s *steering) {
	t.Helper()
	if runtime.GOMAXPROCS(0) < 2 {
		old := runtime.GOMAXPROCS(2)
		t.Cleanup(func() { runtime.GOMAXPROCS(old) })
	}
	server := serving(t, blockFor(t, "dns", h))
	eventually(t, "both transports serve", func() bool { return len(server.base().serving()) == 2 })
	for _, running := range server.base().serving() {
		if u, ok := running.(*udpTransport); ok {
			for _, sock := range u.sockets {
				if got := sock.(*batchedSocket).pace.steering; got == nil || s != nil && got != s {
					t.Fatal("a socket is not steered with the others")
				}
				s = sock.(*batchedSocket).pace.steering
			}
		}
	}
	return server.udp, s
}

// askFromMany asks from so many sockets that, spread, each loop has some.
func askFromMany(t *testing.T, addr string) {
	t.Helper()
	askForLabel(t, addr, "www")
}

func askForLabel(t *testing.T, addr, label string) {
	t.Helper()
	for i := range max(64, 24*runtime.GOMAXPROCS(0)) {
		c := &dns.Client{Timeout: 2 * time.Second}
		if _, _, err := c.Exchange(new(dns.Msg).SetQuestion(fmt.Sprintf("%s.x%d.", label, i), dns.TypeA), addr); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOneLoopServesWhatItCan(t *testing.T) {
	h := new(laneCounter)
	addr, s := steered(t, h)
	askFromMany(t, addr)
	if n := h.seen(); n != 1 {
		t.Errorf("%d loops serve, gathered", n)
	}
	s.spread()
	if s.gathered.Load() {
		t.Fatal("still gathered")
	}
	askFromMany(t, addr)
	if n := h.seen(); n != runtime.GOMAXPROCS(0) {
		t.Errorf("%d loops serve, spread", n)
	}
	eventually(t, "it is gathered again", func() bool {
		time.Sleep(look / 10)
		askFromMany(t, addr)
		return s.gathered.Load()
	})
	h.seen()
	askFromMany(t, addr)
	if n := h.seen(); n != 1 {
		t.Errorf("%d loops serve, gathered again", n)
	}
}

// Queries that go to workers are not gathered; those that wait for exchanges are.
func TestWorkersAreFedByAll(t *testing.T) {
	alwaysWorkers = true
	t.Cleanup(func() { alwaysWorkers = false }) // after the server has ended
	h := &laneCounter{laneHandler: laneHandler{held: make(chan struct{})}}
	close(h.held)
	addr, s := steered(t, h)
	rounds := 3*manyTaken/64 + 1
	for _, label := range []string{"www", "hold"} {
		for range rounds {
			askForLabel(t, addr, label)
		}
		if !s.gathered.Load() {
			t.Errorf("spread by %s", label)
		}
	}
	for _, label := range []string{"unpack", "block"} {
		for range rounds {
			askForLabel(t, addr, label)
		}
		if s.gathered.Load() {
			t.Errorf("gathered, although queries for %s go to workers", label)
		}
		time.Sleep(2 * look)
		if askForLabel(t, addr, label); s.gathered.Load() {
			t.Errorf("gathered again, although queries for %s go to workers", label)
		}
		eventually(t, "it is gathered again", func() bool {
			askFromMany(t, addr)
			return s.gathered.Load()
		})
	}
}

// TestTooMuchForOneLoop has so much come that one loop has no pause. All is answered.
func TestTooMuchForOneLoop(t *testing.T) {
	h := &laneCounter{takes: 500 * time.Microsecond}
	addr, s := steered(t, h)
	const clients, each = 16, 10
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for i := range clients {
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
				c.SetDeadline(time.Now().Add(5 * time.Second))
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
	eventually(t, "it is spread", func() bool { return !s.gathered.Load() })
	h.seen()
	eventually(t, "others serve, too", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.lanes) > 1
	})
}

// steeredSocket is a socket that nobody reads, and its steering.
func steeredSocket(t *testing.T) (*net.UDPConn, *steering) {
	t.Helper()
	conn, err := reuseport.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := newSteering(conn.(*net.UDPConn))
	if s == nil {
		t.Fatal("not steered")
	}
	return conn.(*net.UDPConn), s
}

// pass makes s take it that much time has passed.
func pass(s *steering) {
	s.until, s.looked = time.Time{}, time.Time{}
	s.next.Store(0)
}

// A state that soon proved wrong is not tried again so soon.
func TestSpreadForLonger(t *testing.T) {
	_, s := steeredSocket(t)
	for _, want := range []time.Duration{look, 2 * look, 4 * look} {
		s.spread()
		if s.gathered.Load() || s.again != want {
			t.Errorf("spread for %v, want %v", s.again, want)
		}
		s.consider()
		if s.gathered.Load() {
			t.Error("gathered too soon")
		}
		pass(s)
		s.consider()
		if !s.gathered.Load() {
			t.Error("not gathered")
		}
	}
	s.again = longestSpread
	s.spread()
	if s.again != longestSpread {
		t.Errorf("spread for %v", s.again)
	}
	pass(s)
	s.consider()
	s.since = time.Now().Add(-2 * soon)
	s.spread()
	if s.again != look {
		t.Errorf("spread for %v after it was right for long", s.again)
	}
	pass(s)
	s.looked, s.used = time.Now(), -time.Hour // much has been used
	s.consider()
	if s.gathered.Load() {
		t.Error("gathered under load")
	}
}

func TestPace(t *testing.T) {
	conn, s := steeredSocket(t)
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 64*queuedOctets)
		p := pace{steering: s}
		p.measure(fd)
		if p.queue != 2*64*queuedOctets || p.burst != 2 {
			t.Fatalf("a queue of %d octets, a burst of %d", p.queue, p.burst)
		}
		read := func(times, n int) bool {
			t.Helper()
			for range times {
				p.took(fd, n)
			}
			return s.gathered.Load()
		}
		if !read(20, batchSize) {
			t.Error("spread, although nothing is queued")
		}
		client, err := net.Dial("udp", conn.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for range 100 {
			client.Write(make([]byte, 12))
		}
		p.pause()
		if !read(10, batchSize-1) || !read(1, batchSize) {
			t.Error("spread by batches that are not full")
		}
		if read(1, batchSize) {
			t.Error("not spread, although the queue is more than half full")
		}
		back := func() {
			t.Helper()
			pass(s)
			if p.pause(); !s.gathered.Load() {
				t.Fatal("not gathered in a pause")
			}
		}
		back()
		p.queue = math.MaxInt
		for _, n := range []int{1, batchSize} {
			for end := time.Now().Add(3 * (noPause + longUse)); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				if !read(manyBatches, n) {
					t.Fatalf("spread without the processor, in batches of %d", n)
				}
			}
			p.unpaused += tooLong
			time.Sleep(noPause + longUse)
			if read(manyBatches, n) {
				t.Errorf("not spread after very long, in batches of %d", n)
			}
			back()
			for end := time.Now().Add(5 * time.Second); read(1, n); {
				if time.Now().After(end) {
					t.Fatalf("never spread, in batches of %d", n)
				}
			}
			back()
			if p.batches != 0 || !read(10*manyBatches, n) {
				t.Error("spread by what was before the pause")
			}
			p.pause()
		}
	})
}

// What the system cannot steer is left alone, as is all without the flag.
func TestNotSteered(t *testing.T) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if newSteering(conn) != nil {
		t.Error("a socket that is no one's fellow is steered")
	}
	(*steering)(nil).spread()

	gather = false
	defer func() { gather = true }()
	h := new(laneCounter)
	server := serving(t, blockFor(t, "dns", h))
	askFromMany(t, server.udp)
	if n := h.seen(); n != runtime.GOMAXPROCS(0) {
		t.Errorf("%d loops serve", n)
	}
}

// When the last server of this process has gone, those of others at its address are not steered.
func TestOthersGoOnSpread(t *testing.T) {
	h := new(laneCounter)
	server := serving(t, blockFor(t, "dns", h))
	askFromMany(t, server.udp)
	var got [2]atomic.Int64
	var wg sync.WaitGroup
	var conns []net.PacketConn
	for i := range got {
		c, err := reuseport.ListenPacket("udp", server.udp)
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
	server.base().Stop()
	server.wait()
	for range 64 {
		c, err := net.Dial("udp", server.udp)
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte("x"))
		c.Close()
	}
	eventually(t, "all have come", func() bool { return got[0].Load()+got[1].Load() == 64 })
	for _, c := range conns {
		c.Close()
	}
	wg.Wait()
	if got[0].Load() == 0 || got[1].Load() == 0 {
		t.Error("one socket of the others gets all")
	}
}
