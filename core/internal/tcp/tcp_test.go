package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/test/clients"
)

// encryptions are a connection's ways: plain, and with TLS.
func encryptions(t *testing.T) map[string]*tls.Config {
	return map[string]*tls.Config{"plain": nil, "TLS": coretest.Certificate(t, "dot")}
}

// connect is a client of s.
func connect(t *testing.T, s *served, config *tls.Config) *clients.FrameClient {
	t.Helper()
	return clients.DialFrames(t, s.addr, clientConfig(config))
}

// clientConfig is the configuration of clients of a server with that one.
func clientConfig(config *tls.Config) *tls.Config {
	if config == nil {
		return nil
	}
	return clients.Trusting
}

func TestAnswers(t *testing.T) {
	for how, config := range encryptions(t) {
		for _, lane := range []bool{true, false} {
			s := serve(t, new(coretest.Lane), config, func(s *service.Service) { s.Wire = s.Wire && lane })
			c := connect(t, s, config)
			for name, want := range map[string]string{
				"www.":        "NOERROR 192.0.2.1",
				"unpack.":     "NOERROR 192.0.2.3",
				"block.":      "NOERROR 192.0.2.2",
				"park.":       "NOERROR 192.0.2.2",
				"parkunpack.": "NOERROR 192.0.2.3",
				"parkblock.":  "NOERROR 192.0.2.2",
				"parksame.":   "NOERROR 192.0.2.3",
				"fail.":       "REFUSED",
				"panic.":      "SERVFAIL",
				"local.":      "NOERROR 127.0.0.1",
			} {
				if !lane && name != "panic." {
					want = "NOERROR 192.0.2.3"
				}
				r, err := c.Ask(coretest.Query(name))
				if err != nil || coretest.Describe(r) != want || r.Question[0].Name != name {
					t.Errorf("%s, %s: got %s, %v, want %s", how, name, coretest.Describe(r), err, want)
				}
			}
			if r, err := c.Ask(coretest.Query("long.")); err != nil || lane && len(r.Answer) != 200 || r.Truncated {
				t.Errorf("%s, long: %v, %v", how, r, err)
			}
		}
	}
}

// Queries of all lengths are read whole, in both lanes.
func TestLongQueries(t *testing.T) {
	got := make(chan int, 1)
	s := serve(t, coretest.Handler(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		got <- len(r.IsEdns0().Option[0].(*dns.EDNS0_PADDING).Padding)
		return 0, w.WriteMsg(new(dns.Msg).SetReply(r))
	}), nil, nil)
	c := connect(t, s, nil)
	for _, n := range []int{0, readSpace - 40, readSpace - 34, readSpace - 33, readSpace - 32, readSpace - 30, 9000, 65000, 3} {
		m := coretest.Query(".").SetEdns0(4096, false)
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_PADDING{Padding: make([]byte, n)}}
		if _, err := c.Ask(m); err != nil {
			t.Fatal(err)
		}
		if length := <-got; length != n {
			t.Errorf("padding of %d octets, want %d", length, n)
		}
	}
}

// Queries come in as many pieces as the network likes, and their answers in order where none waits.
func TestPieces(t *testing.T) {
	s := serve(t, new(coretest.Lane), nil, nil)
	c := coretest.Dial(t, s.addr)
	c.(*net.TCPConn).SetNoDelay(true)
	var all []byte
	const n = 50
	for i := range n {
		m := coretest.Query("www.")
		m.Id = uint16(i)
		all = append(all, clients.Frame(coretest.Packed(t, m))...)
	}
	go func() {
		for size := 1; len(all) > 0; size = size%37 + 1 {
			k := min(size, len(all))
			c.Write(all[:k])
			all = all[k:]
		}
	}()
	for i := range n {
		b, err := clients.ReadFrame(c)
		m := new(dns.Msg)
		if err != nil || m.Unpack(b) != nil || m.Id != uint16(i) {
			t.Fatalf("reply %d: got %v, %v", i, m, err)
		}
	}
}

// What has come in one piece is answered in one; with TLS in a record for each reply.
func TestRepliesGoTogether(t *testing.T) {
	for how, config := range encryptions(t) {
		writes := new(atomic.Int64)
		spoken := Handler
		spoken.TLS = config
		s := serveOn(t, coretest.Service(t, coretest.Label(t), new(coretest.Lane)), counted{coretest.ListenTCP(t), writes}, spoken)
		c := coretest.Dial(t, s.addr)
		if config != nil {
			c = tls.Client(c, clients.Trusting)
		}
		ask := func(name string, n int) {
			if _, err := c.Write([]byte(strings.Repeat(string(coretest.Frame(t, name)), n))); err != nil {
				t.Fatal(err)
			}
		}
		ask("www.", 1)
		if _, err := clients.ReadFrame(c); err != nil { // what a connection begins with has been written
			t.Fatal(err)
		}
		before := writes.Load()
		ask("www.", 20)
		pieces, want := 1, 20*(2+37)
		if config != nil {
			pieces, want = 20, 2+37
		}
		for i := range pieces {
			b := make([]byte, 1<<16)
			if n, err := c.Read(b); err != nil || n != want {
				t.Errorf("%s: %d octets in piece %d, %v, want %d", how, n, i, err, want)
			}
		}
		if n := writes.Load() - before; n != 1 {
			t.Errorf("%s: %d pieces are written", how, n)
		}
		ask("long.", 20) // more than is held for one piece
		for range 20 {
			b, err := clients.ReadFrame(c)
			if m := new(dns.Msg); err != nil || m.Unpack(b) != nil || len(m.Answer) != 200 {
				t.Fatalf("%s: got %v, %v", how, m, err)
			}
		}
	}
}

// counted counts the writes of the connections of a listener.
type counted struct {
	net.Listener
	writes *atomic.Int64
}

func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.writes}, err
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// A query that need not wait is answered before others of its connection that do.
func TestFastQueryDoesNotWait(t *testing.T) {
	for how, config := range encryptions(t) {
		g := coretest.NewGate(t)
		c := connect(t, serve(t, g, config, nil), config)
		var slow sync.WaitGroup
		for i := range 3 {
			slow.Go(func() {
				if r, err := c.Ask(coretest.Query(fmt.Sprintf("slow%d.", i))); err != nil || len(r.Answer) != 1 {
					t.Errorf("%s: got %v, %v", how, r, err)
				}
			})
		}
		g.Holds(t, 3) // none of them waits for another
		if r, err := c.Ask(coretest.Query("fast.")); err != nil || len(r.Answer) != 1 {
			t.Errorf("%s: got %v, %v", how, r, err)
		}
		g.Open()
		slow.Wait()
	}
}

// TestPipelineIsBounded asks more than may be worked on at one time: all get answered.
func TestPipelineIsBounded(t *testing.T) {
	var mu sync.Mutex
	var now, most int
	s := serve(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
		return coretest.Echo(ctx, w, r)
	}), nil, func(s *service.Service) { s.Pipeline = 4 })
	c := coretest.Dial(t, s.addr)
	c.Write([]byte(strings.Repeat(string(coretest.Frame(t, "www.")), 40)))
	for range 40 {
		if _, err := clients.ReadFrame(c); err != nil {
			t.Fatal(err)
		}
	}
	if most != 4 {
		t.Errorf("%d queries were at work at one time", most)
	}
}

// While as many queries wait as may, nothing more is read; what is answered meanwhile goes out.
func TestFullPipelineHoldsTheReader(t *testing.T) {
	g := coretest.NewGate(t)
	s := serve(t, g, nil, func(s *service.Service) { s.Pipeline = 4 })
	c := coretest.Dial(t, s.addr)
	c.Write([]byte(strings.Repeat(string(coretest.Frame(t, "slow.")), 8)))
	g.Holds(t, 4)
	time.Sleep(50 * time.Millisecond) // in which a fifth would come, most likely
	if n := g.Waiting.Load(); n != 4 {
		t.Errorf("%d queries are at work at one time", n)
	}
	g.Open()
	for range 8 {
		if _, err := clients.ReadFrame(c); err != nil {
			t.Fatal(err)
		}
	}
}

// What is answered goes out, though the reader is held up behind it.
func TestHeldReaderWritesFirst(t *testing.T) {
	h := &coretest.Lane{Held: make(chan struct{})}
	s := serve(t, h, nil, func(s *service.Service) { s.Pipeline = 4 })
	c := coretest.Dial(t, s.addr)
	hold := string(coretest.Frame(t, "hold."))
	c.Write([]byte(strings.Repeat(hold, 4) + string(coretest.Frame(t, "www.")) + hold))
	want := []string{"NOERROR 192.0.2.1", "NOERROR 192.0.2.2"}
	for i := range 6 {
		b, err := clients.ReadFrame(c)
		m := new(dns.Msg)
		if err != nil || m.Unpack(b) != nil || coretest.Describe(m) != want[min(i, 1)] {
			t.Fatalf("reply %d: %v, %v", i, m, err)
		}
		if i == 0 {
			close(h.Held)
		}
	}
}

// Where too many queries of the process wait, those of streams wait for a place; none is dropped.
func TestNothingIsDropped(t *testing.T) {
	g := coretest.NewGate(t)
	s := serve(t, g, nil, nil)
	exec.SetWaiting(1)
	defer exec.SetWaiting(memory.Waiting(memory.Limit()))
	c := coretest.Dial(t, s.addr)
	c.Write(coretest.Frame(t, "slow."))
	g.Holds(t, 1)
	c.Write([]byte(strings.Repeat(string(coretest.Frame(t, "www.")), 3)))
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if b, err := clients.ReadFrame(c); err == nil {
		t.Errorf("got %x beyond the bound", b)
	}
	g.Open()
	c.SetReadDeadline(time.Now().Add(clients.AskTime))
	for i := range 4 {
		if _, err := clients.ReadFrame(c); err != nil {
			t.Fatalf("reply %d: %v", i, err)
		}
	}
}

func TestTimes(t *testing.T) {
	quick := func(s *service.Service) { s.Read, s.Idle = time.Second, 300*time.Millisecond }
	for name, tc := range map[string]struct {
		send  func(c net.Conn, frame []byte)
		least time.Duration
		limit string
	}{
		"first query": {func(net.Conn, []byte) {}, time.Second, "read_time"},
		"next query":  {func(c net.Conn, frame []byte) { c.Write(frame) }, 300 * time.Millisecond, "idle_time"},
		"half a query": {func(c net.Conn, frame []byte) {
			c.Write(frame)
			c.Write(frame[:10])
		}, 300 * time.Millisecond, "read_time"},
		"dribble": {func(c net.Conn, frame []byte) {
			c.Write(frame)
			go func() {
				for _, b := range frame[:len(frame)-1] {
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
			}()
		}, 300 * time.Millisecond, "read_time"},
	} {
		s := serve(t, new(coretest.Lane), nil, quick)
		begin := time.Now()
		c := coretest.Dial(t, s.addr)
		tc.send(c, coretest.Frame(t, "www."))
		if !coretest.ClosedAfter(t, c, begin, tc.least) || coretest.Limited(s.Service, tc.limit) != 1 {
			t.Errorf("%s: after %v, counted %d", name, time.Since(begin), coretest.Limited(s.Service, tc.limit))
		}
	}
}

// A connection is not idle while a query of it is at work.
func TestNotIdleAtWork(t *testing.T) {
	g := coretest.NewGate(t)
	s := serve(t, g, nil, func(s *service.Service) { s.Idle = 500 * time.Millisecond })
	c := connect(t, s, nil)
	time.AfterFunc(2*s.Idle, g.Open)
	for range 2 {
		if _, err := c.Ask(coretest.Query("slow.")); err != nil {
			t.Error(err)
		}
	}
}

func TestQueries(t *testing.T) {
	for _, name := range []string{"www.", "unpack."} {
		s := serve(t, new(coretest.Lane), nil, func(s *service.Service) { s.Queries = 3 })
		c := coretest.Dial(t, s.addr)
		c.Write([]byte(strings.Repeat(string(coretest.Frame(t, name)), 5)))
		n := 0
		for ; ; n++ {
			if _, err := clients.ReadFrame(c); err != nil {
				break
			}
		}
		if n != 3 || coretest.Limited(s.Service, "queries") != 1 {
			t.Errorf("%s: %d answers, counted %d", name, n, coretest.Limited(s.Service, "queries"))
		}
	}
}

func TestQueryBytes(t *testing.T) {
	s := serve(t, new(coretest.Lane), nil, func(s *service.Service) { s.QueryBytes = 100 })
	for _, together := range []bool{true, false} {
		before := coretest.Limited(s.Service, "query_bytes")
		c := coretest.Dial(t, s.addr)
		good, long := coretest.Frame(t, "www."), clients.Frame(make([]byte, 101))
		if together {
			good = append(good, long...)
		}
		c.Write(good)
		if _, err := clients.ReadFrame(c); err != nil {
			t.Error(err)
		}
		if !together {
			c.Write(long[:2]) // its length is enough
		}
		coretest.ClosedAfter(t, c, time.Now(), 0)
		if coretest.Limited(s.Service, "query_bytes") != before+1 {
			t.Error("not counted")
		}
	}
}

// long answers with much, in the message lane.
var long = coretest.Handler(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	for range 100 {
		header := dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}
		m.Answer = append(m.Answer, &dns.TXT{Hdr: header, Txt: []string{strings.Repeat("x", 250)}})
	}
	return 0, w.WriteMsg(m)
})

// TestUnread has a client ask and ask, and never read.
func TestUnread(t *testing.T) {
	begun := unsent.Octets()
	for name, h := range map[string]plugin.Handler{"long.": new(coretest.Lane), "message.": long} {
		s := serve(t, h, nil, func(s *service.Service) { s.Unread, s.Write = 64<<10, 300*time.Millisecond })
		c := coretest.Dial(t, s.addr)
		c.(*net.TCPConn).SetReadBuffer(4096)
		one := coretest.Frame(t, name)
		var err error
		for err == nil {
			_, err = c.Write([]byte(strings.Repeat(string(one), 1000)))
			if n := unsent.Octets(); n > 1<<20 {
				t.Fatalf("%d octets wait", n)
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection goes on", name)
		}
		if coretest.Limited(s.Service, "write_time") == 0 {
			t.Errorf("%s: not counted", name)
		}
	}
	coretest.Eventually(t, "nothing is left in the ledger", func() bool { return unsent.Octets() == begun })
}

func TestUnsent(t *testing.T) {
	unsent.SetMax(2000)
	defer unsent.SetMax(memory.MaxUnsent)
	for name, tc := range map[string]struct {
		handler plugin.Handler
		refused int64
	}{
		"www.":     {new(coretest.Lane), 0},
		"message.": {long, 1},
	} {
		s := serve(t, tc.handler, nil, nil)
		_, err := connect(t, s, nil).Ask(coretest.Query(name))
		if n := coretest.Limited(s.Service, "in_flight_bytes"); (err != nil) != (tc.refused > 0) || int64(n) != tc.refused {
			t.Errorf("%s: %v, counted %d", name, err, n)
		}
	}
}

// Handlers see the session of TLS, and none without TLS.
func TestConnectionState(t *testing.T) {
	for how, config := range encryptions(t) {
		seen := make(chan *tls.ConnectionState, 1)
		s := serve(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			c, ok := w.(dns.ConnectionStater)
			if !ok {
				t.Errorf("%T tells no state", w)
			}
			seen <- c.ConnectionState()
			return coretest.Echo(ctx, w, r)
		}), config, nil)
		if _, err := connect(t, s, config).Ask(coretest.Query("www.")); err != nil {
			t.Fatal(err)
		}
		if state := <-seen; (state != nil) != (config != nil) || state != nil && !state.HandshakeComplete {
			t.Errorf("%s: got %v", how, state)
		}
	}
}

// A handler may close the connection, or take it: then no more is read.
func TestHandlerEndsTheConnection(t *testing.T) {
	for name, end := range map[string]func(w dns.ResponseWriter){
		"Close":  func(w dns.ResponseWriter) { w.Close() },
		"Hijack": func(w dns.ResponseWriter) { w.Hijack(); w.Close() },
	} {
		s := serve(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			coretest.Echo(ctx, w, r)
			end(w)
			return 0, nil
		}), nil, nil)
		c := coretest.Dial(t, s.addr)
		c.Write(coretest.Frame(t, "www."))
		if _, err := clients.ReadFrame(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		coretest.ClosedAfter(t, c, time.Now(), 0)
	}
}

// Of a connection that a handler has taken no more queries are read: but for one that is on its way to a worker.
func TestHijackedIsLeftAlone(t *testing.T) {
	var calls atomic.Int32
	s := serve(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		calls.Add(1)
		w.Hijack()
		return coretest.Echo(ctx, w, r)
	}), nil, func(s *service.Service) { s.Pipeline = 1 })
	c := coretest.Dial(t, s.addr)
	c.Write([]byte(strings.Repeat(string(coretest.Frame(t, "www.")), 4)))
	if _, err := clients.ReadFrame(c); err != nil {
		t.Fatal(err)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if n := calls.Load(); n > 2 {
		t.Errorf("%d queries were served", n)
	}
}

// A client that has closed its side gets the replies to what was parked. The last reply of a connection is written by
// another goroutine than the one that closes it, so this is tried often.
func TestLastReplies(t *testing.T) {
	const rounds = 30
	h := &coretest.Lane{Held: make(chan struct{})}
	s := serve(t, h, nil, nil)
	var conns []net.Conn
	for range rounds {
		c := coretest.Dial(t, s.addr)
		c.Write(coretest.Frame(t, "hold."))
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	coretest.Eventually(t, "all are parked", func() bool { return h.Holding.Load() == rounds })
	close(h.Held)
	for i, c := range conns {
		b, err := clients.ReadFrame(c)
		if m := new(dns.Msg); err != nil || m.Unpack(b) != nil || coretest.Describe(m) != "NOERROR 192.0.2.2" {
			t.Errorf("%d: %v, %v", i, m, err)
		}
	}
}

// A listener that stops answers what has come, also what is parked; each client's connection ends with that.
func TestStop(t *testing.T) {
	for how, config := range encryptions(t) {
		h := &coretest.Lane{Held: make(chan struct{})}
		s := serve(t, h, config, nil)
		c := connect(t, s, config)
		if _, err := c.Ask(coretest.Query("www.")); err != nil {
			t.Fatal(err)
		}
		done := make(chan string)
		go func() {
			r, err := c.Ask(coretest.Query("hold."))
			if err != nil {
				t.Error(err)
			}
			done <- coretest.Describe(r)
		}()
		coretest.Eventually(t, "it is parked", func() bool { return h.Holding.Load() == 1 })
		ended := coretest.Stopping(t, s.end)
		close(h.Held)
		if got := <-done; got != "NOERROR 192.0.2.2" {
			t.Errorf("%s: got %s", how, got)
		}
		ended()
		coretest.Eventually(t, "the connection ends", c.Closed)
	}
}
