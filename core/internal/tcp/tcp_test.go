package tcp

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/wire"
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

// What is shorter than a header is ignored, whatever it may be the begin of, and the connection goes on.
func TestShortMessages(t *testing.T) {
	for how, config := range encryptions(t) {
		for _, lane := range []bool{true, false} {
			for _, header := range []string{"\x12\x34\x01", "\x12\x34\x28", "\xff\xff\xff"} { // QUERY, UPDATE, neither
				s := serve(t, new(coretest.Lane), config, func(s *service.Service) { s.Wire = lane })
				c := connect(t, s, config)
				for n := range wire.HeaderLen {
					b := (header + strings.Repeat("\x00", wire.HeaderLen))[:n]
					if _, err := c.Conn.Write(clients.Frame([]byte(b))); err != nil {
						t.Fatal(err)
					}
				}
				if r, err := c.Ask(coretest.Query("www.")); err != nil || len(r.Answer) != 1 {
					t.Errorf("%s, %x: %v, %v", how, header, r, err)
				}
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
