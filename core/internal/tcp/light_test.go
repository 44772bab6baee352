package tcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

func needsLight(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("connections without goroutines are there on Linux only")
	}
}

// inGoroutines is how many connections have one, of this package's test.
func inGoroutines() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte("tcp.(*protocol).Serve("))
}

// Connections have no goroutine as long as the wire lane has all replies at once, and get one with the first query of
// which that is not so.
func TestLightHasNoGoroutine(t *testing.T) {
	needsLight(t)
	s := serve(t, new(coretest.Lane), nil, nil)
	ask := func(c *clients.FrameClient, name string) {
		t.Helper()
		if r, err := c.Ask(coretest.Query(name)); err != nil || len(r.Answer) != 1 {
			t.Fatalf("%s: got %v, %v", name, r, err)
		}
	}
	var all [20]*clients.FrameClient
	for i := range all {
		all[i] = connect(t, s, nil)
	}
	for range 3 {
		for _, c := range all {
			ask(c, "www.")
		}
		if n := inGoroutines(); n != 0 {
			t.Errorf("%d have a goroutine", n)
		}
	}
	for i, name := range []string{"unpack.", "park.", "block."} {
		n, c := 0, all[i]
		for try := 0; try < 20 && n != 1; try++ { // on a busy machine it has none again when that is looked at
			ask(c, name)
			n = inGoroutines()
		}
		if n != 1 {
			t.Errorf("%d have a goroutine after %s", n, name)
		}
		c.Close()
		eventually.Holds(t, "its goroutine ends", func() bool { return inGoroutines() == 0 })
	}
}

// Whatever comes in whatever pieces, clients get what they get from a goroutine of their own.
func TestLightInPieces(t *testing.T) {
	needsLight(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	h := new(coretest.Lane)
	light, heavy := serve(t, h, nil, nil), serveOn(t, coretest.Service(t, coretest.Label(t), h), coretest.ListenTCP(t), conn.Handler{New: Handler.New})
	names := []string{"www.", "client.", "local.", "long.", "fail.", "unpack.", "block.", "park.", "parkunpack."}
	for range 60 {
		var all []byte
		n := 1 + r.IntN(12)
		for i := range n {
			q := coretest.Query(names[min(r.IntN(2*len(names)), r.IntN(len(names)))%len(names)])
			q.Id = uint16(i)
			all = append(all, clients.Frame(coretest.Packed(t, q))...)
		}
		var pieces [][]byte
		for rest := all; len(rest) > 0; {
			k := 1 + r.IntN(len(rest))
			pieces, rest = append(pieces, rest[:k]), rest[k:]
		}
		got, want := replies(t, light.addr, pieces, n), replies(t, heavy.addr, pieces, n)
		if !slices.Equal(got, want) {
			t.Fatalf("got\n%s\nwant\n%s\nof %d pieces of %x", got, want, len(pieces), all)
		}
	}
}

// replies is what comes for pieces on a connection of its own: n messages, by their ids, without what is chance.
func replies(t *testing.T, addr string, pieces [][]byte, n int) (got []string) {
	t.Helper()
	c := coretest.Dial(t, addr)
	defer c.Close()
	for i, p := range pieces {
		c.Write(p)
		if i%2 == 0 {
			time.Sleep(100 * time.Microsecond) // else they come as one
		}
	}
	c.SetReadDeadline(time.Now().Add(clients.AskTime))
	for range n {
		b, err := clients.ReadFrame(c)
		m := new(dns.Msg)
		if err != nil || m.Unpack(b) != nil {
			t.Fatalf("%x, %v after %s", b, err, got)
		}
		answer := fmt.Sprint(m.Answer)
		if len(m.Question) == 1 && m.Question[0].Name == "client." {
			answer = "the client's"
		}
		got = append(got, fmt.Sprintf("%02d %s %s %s", m.Id, m.Question[0].Name, dns.RcodeToString[m.Rcode], answer))
	}
	slices.Sort(got)
	return got
}

// A query with which a connection gets its goroutine is not served once more, and is its own while others are read.
func TestLightLeavesQueries(t *testing.T) {
	needsLight(t)
	h := new(coretest.Lane)
	s := serve(t, h, nil, nil)
	for name, runs := range map[string]int64{"www.": 1, "unpack.": 1, "block.": 2, "park.": 2} {
		before := h.Runs.Load()
		if r, err := connect(t, s, nil).Ask(coretest.Query(name)); err != nil || len(r.Answer) != 1 {
			t.Errorf("%s: %v, %v", name, r, err)
		}
		if n := h.Runs.Load() - before; n != runs {
			t.Errorf("%s was served %d times, want %d", name, n, runs)
		}
	}
	var wg sync.WaitGroup
	for i := range 200 {
		c := connect(t, s, nil)
		wg.Go(func() {
			name := fmt.Sprintf("unpack.%0*d.", 1+i%60, i)
			if r, err := c.Ask(coretest.Query(name)); err != nil || r.Question[0].Name != name || len(r.Answer) != 1 {
				t.Errorf("%s: %v, %v", name, r, err)
			}
		})
	}
	wg.Wait()
}

// With its last query a connection is closed, and not with the next one.
func TestLightHasSoManyQueries(t *testing.T) {
	needsLight(t)
	s := serve(t, new(coretest.Lane), nil, func(s *service.Service) { s.Queries = 3 })
	for _, at := range [][]int{{1, 1, 1}, {3}, {2, 2}, {5}} {
		c := coretest.Dial(t, s.addr)
		for _, n := range at {
			c.Write(bytes.Repeat(coretest.Frame(t, "www."), n))
			time.Sleep(time.Millisecond)
		}
		for range 3 {
			if _, err := clients.ReadFrame(c); err != nil {
				t.Errorf("%d: %v", at, err)
			}
		}
		if b, err := io.ReadAll(c); len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d: %x, %v", at, b, err)
		}
	}
	if n := coretest.Limited(s.Service, "queries"); n != 4 {
		t.Errorf("%d counted", n)
	}
}

// In a reload connections without goroutines go on with the next server, whose listener is another descriptor of the
// same socket.
func TestLightGoesOn(t *testing.T) {
	needsLight(t)
	first := coretest.Service(t, coretest.Label(t), new(coretest.Lane))
	next := coretest.Service(t, coretest.Label(t), coretest.Who{})
	from := coretest.ListenTCP(t)
	again := coretest.Again(t, from)
	l := conn.NewListener(first, conn.ClientAuth{})
	h := Handler
	l.ListenOn(from)
	end := coretest.Serving(t, l, func() error { return l.Serve(from, h) })
	var all []*clients.FrameClient
	more := func(answer string) {
		t.Helper()
		for range 10 {
			all = append(all, clients.DialFrames(t, from.Addr().String(), nil))
		}
		for _, c := range all {
			if r, err := c.Ask(coretest.Query("www.")); err != nil || coretest.Describe(r) != "NOERROR "+answer {
				t.Fatalf("got %v, %v", r, err)
			}
		}
	}
	more("192.0.2.1")
	l.Sit(next)
	l.ListenOn(again)
	served := make(chan error, 1)
	go func() { served <- l.Serve(again, h) }()
	more("127.0.0.1")
	if n := inGoroutines(); n != 0 {
		t.Errorf("%d have a goroutine", n)
	}
	eventually.Holds(t, "nobody holds the first", func() bool { return !l.Holds(first) })
	if err := end(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	for _, c := range all {
		if !c.Closed() {
			t.Error("a connection is open")
		}
	}
}

// What is on its way when the server stops is answered: on connections that are open, and on those that the system has
// accepted and nobody has seen yet.
func TestLightStops(t *testing.T) {
	needsLight(t)
	for range 20 {
		s := serve(t, new(coretest.Lane), nil, nil)
		frame := coretest.Frame(t, "www.")
		open := coretest.Dial(t, s.addr)
		open.Write(frame)
		clients.ReadFrame(open)
		fresh := coretest.Dial(t, s.addr)
		fresh.Write(frame)
		open.Write(frame)
		ended := make(chan error, 1)
		go func() { ended <- s.end() }()
		for what, c := range map[string]net.Conn{"open": open, "fresh": fresh} {
			c.SetReadDeadline(time.Now().Add(clients.AskTime))
			if b, err := clients.ReadFrame(c); err != nil || len(b) < 12 {
				t.Errorf("%s: %x, %v", what, b, err)
			}
			if n, err := c.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("%s: %d octets more, %v", what, n, err)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A listener at all addresses tells each connection's own.
func TestLightAddresses(t *testing.T) {
	needsLight(t)
	for _, at := range []string{"0.0.0.0:0", "[::]:0", "[::1]:0", "127.0.0.1:0"} {
		from, err := net.Listen("tcp", at)
		if err != nil {
			t.Logf("%s: %v", at, err) // the machine may have no IPv6
			continue
		}
		s := serveOn(t, coretest.Service(t, coretest.Label(t), new(coretest.Lane)), from, Handler)
		_, port, _ := net.SplitHostPort(s.addr)
		for _, to := range []string{"127.0.0.1", "127.0.0.5", "::1"} {
			nc, err := net.DialTimeout("tcp", net.JoinHostPort(to, port), time.Second)
			if err != nil {
				continue // nobody listens there
			}
			for name, want := range map[string]string{"local.": to, "client.": nc.LocalAddr().(*net.TCPAddr).IP.String()} {
				nc.Write(coretest.Frame(t, name))
				b, err := clients.ReadFrame(nc)
				r := new(dns.Msg)
				if err != nil || r.Unpack(b) != nil || len(r.Answer) != 1 || dns.Field(r.Answer[0], 1) != want {
					t.Errorf("%s to %s: %s%v, %v, want %s", at, to, name, r.Answer, err, want)
				}
			}
			nc.Close()
		}
	}
}

// BenchmarkOpen is a connection that is opened, asked once, and closed: without a goroutine as long as it needs none,
// and with one.
func BenchmarkOpen(b *testing.B) {
	for how, h := range map[string]conn.Handler{"light": Handler, "goroutine": {New: Handler.New}} {
		for _, name := range []string{"www.", "unpack."} {
			b.Run(how+"/"+name, func(b *testing.B) {
				s := serveOn(b, coretest.Service(b, coretest.Label(b), new(coretest.Lane)), coretest.ListenTCP(b), h)
				frame := coretest.Frame(b, name)
				b.ReportAllocs()
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						c := coretest.Dial(b, s.addr)
						c.Write(frame)
						if _, err := clients.ReadFrame(c); err != nil {
							b.Error(err)
						}
						c.Close()
					}
				})
			})
		}
	}
}
