package tcp

import (
	"bytes"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clients"
)

// restAfter is what package conn has.
const restAfter = 500 * time.Millisecond

// atRest waits until n more connections rest than before.
func atRest(t *testing.T, before, n int) {
	t.Helper()
	eventually.Holds(t, "connections rest", func() bool { return conn.Resting()-before == n })
}

func needsRest(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("connections rest on Linux only")
	}
	eventually.Holds(t, "no connection of another test rests", func() bool { return conn.Resting() == 0 })
}

// Connections rest before their first query and between queries, have no goroutine then, and go on as before.
func TestRest(t *testing.T) {
	needsRest(t)
	for how, config := range encryptions(t) {
		t.Run(how, func(t *testing.T) {
			s := serve(t, new(coretest.Lane), config, func(s *service.Service) { s.Read = 10 * time.Second })
			var all [40]*clients.FrameClient
			for i := range all {
				all[i] = connect(t, s, config)
			}
			for _, name := range []string{"www.", "unpack.", "park."} {
				atRest(t, 0, len(all))
				for _, c := range all {
					if r, err := c.Ask(coretest.Query(name)); err != nil || len(r.Answer) != 1 {
						t.Fatalf("%s: got %v, %v", name, r, err)
					}
				}
			}
			atRest(t, 0, len(all))
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			if bytes.Contains(stacks, []byte("tcp.(*protocol).Serve")) {
				t.Errorf("a goroutine waits for a client:\n%s", stacks)
			}
			for _, c := range all[1:] {
				c.Close()
			}
			atRest(t, 0, 1) // those that are closed have left
			begin := time.Now()
			if err := s.end(); err != nil || time.Since(begin) > service.DrainTime+5*time.Second {
				t.Errorf("it ends after %v: %v", time.Since(begin), err)
			}
			if conn.Resting() != 0 {
				t.Error("one still rests")
			}
		})
	}
}

// The times of clients hold for connections that rest: until the first query, and until the next one.
func TestRestIsIdleTime(t *testing.T) {
	needsRest(t)
	for how, config := range encryptions(t) {
		const read, idle = 3 * time.Second, 2 * time.Second
		s := serve(t, new(coretest.Lane), config, func(s *service.Service) { s.Read, s.Idle = read, idle })
		begin := time.Now()
		c := connect(t, s, config)
		atRest(t, 0, 1)
		asked := time.Now()
		c.Ask(coretest.Query("www."))
		silent := clients.DialFrames(t, s.addr, clientConfig(config)).Conn
		atRest(t, 0, 2)
		eventually.Holds(t, how+": the one that has asked is closed", c.Closed)
		if d := time.Since(asked); d < idle || d > 5*idle {
			t.Errorf("%s: closed after %v", how, d)
		}
		if n := coretest.Limited(s.Service, "idle_time"); n != 1 {
			t.Errorf("%s: %d counted as idle", how, n)
		}
		if !coretest.ClosedAfter(t, silent, begin, read) {
			t.Errorf("%s: the one that has not asked is closed too early", how)
		}
		if d := time.Since(begin); d > 5*read {
			t.Errorf("%s: the one that has not asked is closed after %v", how, d)
		}
		if n := coretest.Limited(s.Service, "read_time"); n != 1 {
			t.Errorf("%s: %d counted for the time of the first query", how, n)
		}
	}
}

// A query that comes in pieces has the time that it had: with the first octet the connection rests no more.
func TestPiecesWakeOnce(t *testing.T) {
	needsRest(t)
	s := serve(t, new(coretest.Lane), nil, nil)
	c := coretest.Dial(t, s.addr)
	frame := coretest.Frame(t, "www.")
	for _, pieces := range [][][]byte{
		{frame[:1], frame[1:2], frame[2:]},
		{frame[:2], frame[2:]},
		{frame[:7], frame[7:]},
	} {
		atRest(t, 0, 1)
		for i, piece := range pieces {
			c.Write(piece)
			if i == len(pieces)-1 {
				break
			}
			atRest(t, 0, 0)
			time.Sleep(restAfter * 3 / 2)
			if conn.Resting() != 0 {
				t.Errorf("it rests after %d pieces", i+1)
			}
		}
		b, err := clients.ReadFrame(c)
		if err != nil || len(b) < 12 {
			t.Fatalf("got %x, %v", b, err)
		}
	}
}

// A connection that rests gives way to others, and is closed for it.
func TestRestGivesWay(t *testing.T) {
	needsRest(t)
	s := serve(t, new(coretest.Lane), nil, func(s *service.Service) { s.Connections = 1 })
	c := coretest.Dial(t, s.addr)
	atRest(t, 0, 1)
	other := connect(t, s, nil)
	if r, err := other.Ask(coretest.Query("www.")); err != nil || len(r.Answer) != 1 {
		t.Fatalf("got %v, %v", r, err)
	}
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%d octets, %v", n, err)
	}
	if time.Sleep(3 * restAfter); conn.Resting() > 1 {
		t.Error("it still rests")
	}
}

// What a query after a rest pays.
func BenchmarkWake(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("connections rest on Linux only")
	}
	s := coretest.Service(b, coretest.Label(b), new(coretest.Lane))
	from := coretest.ListenTCP(b)
	l := conn.NewListener(s, conn.ClientAuth{})
	l.ListenOn(from)
	defer coretest.Serving(b, l, func() error { return l.Serve(from, Handler) })()
	c := coretest.Dial(b, from.Addr().String())
	frame := coretest.Frame(b, "www.")
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for conn.Resting() == 0 {
			time.Sleep(time.Millisecond)
		}
		b.StartTimer()
		c.Write(frame)
		if _, err := clients.ReadFrame(c); err != nil {
			b.Fatal(err)
		}
	}
}
