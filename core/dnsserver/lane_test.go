package dnsserver

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/request"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/net/http2"
)

func TestWireLane(t *testing.T) {
	h := new(laneHandler)
	_, udp, tcp := running(t, block1(".", h), block1("panic.", h)) // which leaves the wire lane
	var wg sync.WaitGroup
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
		"drop.":       "nothing",
	} {
		for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
			wg.Go(func() {
				c := &dns.Client{Net: network, Timeout: clients.AskTime}
				if want == "nothing" {
					c.Timeout = 300 * time.Millisecond
				}
				for range 3 {
					r, _, err := c.Exchange(query(name), addr)
					if got := describe(r); got != want {
						t.Errorf("%s %s: got %s, %v, want %s", network, name, got, err, want)
					}
				}
			})
		}
	}
	wg.Wait()
	if parked() != 0 {
		t.Errorf("%d queries are parked", parked())
	}
}

func TestWireLaneOff(t *testing.T) {
	WireLane = false
	t.Cleanup(func() { WireLane = true }) // after the server has ended
	h := new(laneHandler)
	_, udp, tcp := running(t, block1(".", h))
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		if got := describe(ask(t, network, addr, "www.", nil)); got != "NOERROR 192.0.2.3" {
			t.Errorf("%s: %s", network, got)
		}
	}
	if h.Runs.Load() != 0 {
		t.Error("the wire lane was used")
	}
}

// Blocks that look at messages before they take a query need messages.
func TestWhatIsUnpacked(t *testing.T) {
	h := new(laneHandler)
	viewed := block1("view.", h)
	viewed.FilterFuncs = []FilterFunc{func(context.Context, *request.Request) bool { return true }}
	_, udp, _ := running(t, viewed, block1(".", h))
	if got := describe(ask(t, "udp", udp, "www.view.", nil)); got != "NOERROR 192.0.2.3" {
		t.Errorf("view: %s", got)
	}
	if h.Runs.Load() != 0 {
		t.Errorf("%d runs in the wire lane", h.Runs.Load())
	}
	if got := describe(ask(t, "udp", udp, "www.", nil)); got != "NOERROR 192.0.2.1" {
		t.Errorf("plain: %s", got)
	}
}

// An embedding type's own ServeDNS is not passed by.
type embedder struct{ *laneHandler }

func (e embedder) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return dns.RcodeNotImplemented, nil
}

func TestEmbeddedServeWire(t *testing.T) {
	_, udp, _ := running(t, block1(".", embedder{new(laneHandler)}))
	if got := describe(ask(t, "udp", udp, "www.", nil)); got != "NOTIMP" {
		t.Errorf("got %s", got)
	}
}

// dialUDP is a connected socket that gives up after a while.
func dialUDP(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(clients.AskTime))
	t.Cleanup(func() { c.Close() })
	return c
}

// Many queries at once, in and out of batches.
func TestBatches(t *testing.T) {
	_, udp, tcp := running(t, block1(".", new(laneHandler)))
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		c, err := dns.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.UDPSize = dns.MaxMsgSize
		c.SetDeadline(time.Now().Add(5 * time.Second))
		want := map[uint16]string{}
		for i := range 100 {
			label := []string{"www", "unpack", "block", "park", "long"}[i%5]
			m := new(dns.Msg).SetQuestion(fmt.Sprintf("%s.x%d.", label, i), dns.TypeA)
			m.SetEdns0(4096, false)
			m.Id = uint16(i)
			want[m.Id] = m.Question[0].Name
			if err := c.WriteMsg(m); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			r, err := c.ReadMsg()
			if err != nil {
				t.Fatalf("%s: %v, %d replies are missing", network, err, len(want))
			}
			if want[r.Id] != r.Question[0].Name || len(r.Answer) == 0 {
				t.Errorf("%s: %v", network, r)
			}
			if strings.HasPrefix(r.Question[0].Name, "long") && len(r.Answer) != 200 {
				t.Errorf("%s: %d answers", network, len(r.Answer))
			}
			delete(want, r.Id)
		}
	}
}

// A parked query holds neither its connection nor others up, and the end of the server waits for it.
func TestStopWaitsForParked(t *testing.T) {
	h := &laneHandler{Held: make(chan struct{})}
	s, udp, tcp := running(t, block1(".", h))
	var conns []*dns.Conn
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		c, err := dns.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(5 * time.Second))
		for _, name := range []string{"hold.", "www."} {
			if err := c.WriteMsg(new(dns.Msg).SetQuestion(name, dns.TypeA)); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := c.ReadMsg(); err != nil || describe(r) != "NOERROR 192.0.2.1" {
			t.Errorf("%s: %v, %v", network, r, err)
		}
		conns = append(conns, c)
	}
	eventually.Holds(t, "both are parked", func() bool { return parked() == 2 })
	ended := stopping(t, s)
	close(h.Held)
	for _, c := range conns {
		if r, err := c.ReadMsg(); err != nil || describe(r) != "NOERROR 192.0.2.2" {
			t.Errorf("%v, %v", r, err)
		}
	}
	ended()
}

// A client that has closed its side, and one whose server ends, get the replies to what was parked. The last reply of
// a connection is written by another goroutine than the one that closes it, so this is tried often.
func TestLastRepliesOfConnections(t *testing.T) {
	const rounds = 30
	t.Run("tcp", func(t *testing.T) {
		h := &laneHandler{Held: make(chan struct{})}
		_, _, tcp := running(t, block1(".", h))
		var conns []*dns.Conn
		for range rounds {
			c := &dns.Conn{Conn: dial(t, tcp)}
			if err := c.WriteMsg(new(dns.Msg).SetQuestion("hold.", dns.TypeA)); err != nil {
				t.Fatal(err)
			}
			if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
		}
		eventually.Holds(t, "all are parked", func() bool { return parked() == rounds })
		close(h.Held)
		for i, c := range conns {
			if r, err := c.ReadMsg(); err != nil || describe(r) != "NOERROR 192.0.2.2" {
				t.Errorf("%d: %v, %v", i, r, err)
			}
		}
	})
	t.Run("h2", func(t *testing.T) {
		h := &laneHandler{Held: make(chan struct{})}
		s := serving(t, blockFor(t, "https", h))
		var peers []*coretest.H2
		for range rounds {
			p := coretest.ConnectH2(t, s.addr)
			p.Post(1, packed(t, query("hold.")))
			peers = append(peers, p)
		}
		eventually.Holds(t, "all are parked", func() bool { return parked() == rounds })
		go s.base().Stop()
		for _, p := range peers { // one now, one when its queries are the last
			for range 2 {
				if g, ok := p.Until().(*http2.GoAwayFrame); !ok || g.ErrCode != http2.ErrCodeNo {
					t.Fatalf("got %v", g)
				}
			}
		}
		close(h.Held)
		for i, p := range peers {
			m := new(dns.Msg)
			if _, _, body := p.Reply(); m.Unpack(body) != nil || describe(m) != "NOERROR 192.0.2.2" {
				t.Errorf("%d: got %v", i, m)
			}
		}
	})
}

// Beyond the queries that may wait, those over UDP are dropped and counted; what need not wait is answered as ever.
func TestTooManyParked(t *testing.T) {
	h := &laneHandler{Held: make(chan struct{})}
	cfg := block1(".", h)
	few := 2
	cfg.Limits.Waiting = &few
	s, udp, _ := running(t, cfg)
	dropped := func() float64 { return testutil.ToFloat64(vars.QueriesDropped.WithLabelValues(s.Addr, "waiting")) }
	before := dropped()
	c := &dns.Conn{Conn: dialUDP(t, udp)}
	for _, name := range []string{"hold.", "hold.", "park."} {
		if err := c.WriteMsg(query(name)); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "one is dropped", func() bool { return dropped() == before+1 })
	if n := parked(); n != few {
		t.Errorf("%d are parked", n)
	}
	if got := describe(ask(t, "udp", udp, "www.", nil)); got != "NOERROR 192.0.2.1" {
		t.Errorf("what need not wait: %s", got)
	}
	close(h.Held)
	for range few {
		if r, err := c.ReadMsg(); err != nil || describe(r) != "NOERROR 192.0.2.2" || r.Question[0].Name != "hold." {
			t.Errorf("got %v, %v", r, err)
		}
	}
	if got := describe(ask(t, "udp", udp, "park.", nil)); got != "NOERROR 192.0.2.2" {
		t.Errorf("later: %s", got)
	}
	if n := dropped() - before; n != 1 {
		t.Errorf("%v are dropped", n)
	}
}
