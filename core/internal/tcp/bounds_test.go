package tcp

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/test/clients"
)

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
	eventually.Holds(t, "nothing is left in the ledger", func() bool { return unsent.Octets() == begun })
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
