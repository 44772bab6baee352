package dnsserver

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/doq"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

func TestEachSchemeAnswers(t *testing.T) {
	eachScheme(t, func(t *testing.T, scheme string) {
		s := serving(t, blockFor(t, scheme, new(laneHandler)))
		c := clients.Connect(t, scheme, s.addr)
		for name, want := range map[string]string{
			"www.":        "NOERROR 192.0.2.1",
			"unpack.":     "NOERROR 192.0.2.3",
			"block.":      "NOERROR 192.0.2.2",
			"park.":       "NOERROR 192.0.2.2",
			"parkunpack.": "NOERROR 192.0.2.3",
			"parkblock.":  "NOERROR 192.0.2.2",
			"parksame.":   "NOERROR 192.0.2.3",
			"fail.":       "REFUSED",
			"local.":      "NOERROR 127.0.0.1",
		} {
			r, err := c.Ask(query(name))
			if err != nil || describe(r) != want || r.Question[0].Name != name {
				t.Errorf("%s: got %s, %v, want %s", name, describe(r), err, want)
			}
		}
		// All of a long reply comes.
		if r, err := c.Ask(query("long.")); err != nil || len(r.Answer) != 200 || r.Truncated {
			t.Errorf("long: %v, %v", r, err)
		}
		// Last: the block leaves the wire lane.
		if r, err := c.Ask(query("panic.")); err != nil || describe(r) != "SERVFAIL" {
			t.Errorf("panic: %v, %v", r, err)
		}
	})
}

// TestFastQueryDoesNotWait has three queries wait and a fourth one, on the same connection, that need not.
func TestFastQueryDoesNotWait(t *testing.T) {
	eachScheme(t, func(t *testing.T, scheme string) {
		g := newGate(t)
		s := serving(t, blockFor(t, scheme, g))
		c := clients.Connect(t, scheme, s.addr)
		if _, err := c.Ask(query("warm.")); err != nil {
			t.Fatal(err)
		}
		var slow sync.WaitGroup
		for i := range 3 {
			slow.Go(func() {
				if r, err := c.Ask(query(fmt.Sprintf("slow%d.", i))); err != nil || len(r.Answer) != 1 {
					t.Errorf("got %v, %v", r, err)
				}
			})
		}
		g.holds(t, 3) // none of them waits for another
		if r, err := c.Ask(query("fast.")); err != nil || len(r.Answer) != 1 {
			t.Errorf("got %v, %v", r, err)
		}
		g.open()
		slow.Wait()
	})
}

// TestEachSchemePads asks with the options that transports answer by themselves, in both lanes.
func TestEachSchemePads(t *testing.T) {
	eachScheme(t, func(t *testing.T, scheme string) {
		s := serving(t, blockFor(t, scheme, new(laneHandler)))
		c := clients.Connect(t, scheme, s.addr)
		for _, name := range []string{"www.", "unpack.", "fail.", "block."} {
			m := query(name).SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_PADDING{Padding: make([]byte, 50)}}
			if scheme == "dns" || scheme == "tls" {
				m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE})
			}
			r, err := c.Ask(m)
			if err != nil {
				t.Fatal(err)
			}
			r.Compress = true
			padding, keepalive := 0, 0
			for _, o := range r.IsEdns0().Option {
				switch o.(type) {
				case *dns.EDNS0_PADDING:
					padding++
				case *dns.EDNS0_TCP_KEEPALIVE:
					keepalive++
				}
			}
			encrypted, stream := scheme != "dns", scheme == "dns" || scheme == "tls"
			if (padding == 1) != encrypted || (keepalive == 1) != stream || encrypted && r.Len() != 468 {
				t.Errorf("%s: %d octets, %v", name, r.Len(), r.IsEdns0())
			}
			if r, err := c.Ask(query(name).SetEdns0(1232, false)); err != nil || len(r.IsEdns0().Option) != 0 {
				t.Errorf("%s: %v, %v", name, r.IsEdns0(), err)
			}
		}
	})
}

// TestEachSchemeLimits has what a block configures hold for its listener.
func TestEachSchemeLimits(t *testing.T) {
	eachScheme(t, func(t *testing.T, scheme string) {
		cfg := blockFor(t, scheme, new(laneHandler))
		most := 100
		cfg.Limits.QueryBytes = &most
		s := serving(t, cfg)
		before := limitedTo(s, "query_bytes")
		c := clients.Connect(t, scheme, s.addr)
		if _, err := c.Ask(query("www.")); err != nil {
			t.Error(err)
		}
		if _, err := c.Ask(query(strings.Repeat("a.", 60))); err == nil || limitedTo(s, "query_bytes") != before+1 {
			t.Errorf("%v, counted %d", err, limitedTo(s, "query_bytes")-before)
		}
	})
}

// TestStreamQueries has as many queries of a connection answered as its block says.
func TestStreamQueries(t *testing.T) {
	for _, name := range []string{"www.", "unpack."} {
		cfg := blockFor(t, "dns", new(laneHandler))
		three := 3
		cfg.MaxTCPQueries = &three
		s := serving(t, cfg)
		before := limitedTo(s, "queries")
		c := dial(t, s.addr)
		c.Write(bytes.Repeat(doq.Frame(packed(t, query(name))), 5))
		n := 0
		for ; ; n++ {
			if _, err := clients.ReadFrame(c); err != nil {
				break
			}
		}
		if n != 3 || limitedTo(s, "queries") != before+1 {
			t.Errorf("%s: %d answers, counted %d", name, n, limitedTo(s, "queries")-before)
		}
	}
}

// TestStreamTimes has the times of a block hold for its connections.
func TestStreamTimes(t *testing.T) {
	soon := 100 * time.Millisecond
	for reason, set := range map[string]func(*Config){
		"read_time":      func(c *Config) { c.ReadTimeout = soon },
		"idle_time":      func(c *Config) { c.IdleTimeout = soon },
		"handshake_time": func(c *Config) { c.Limits.Handshake = &soon },
	} {
		scheme := "dns"
		if reason == "handshake_time" {
			scheme = "tls"
		}
		cfg := blockFor(t, scheme, new(laneHandler))
		set(cfg)
		s := serving(t, cfg)
		before := limitedTo(s, reason)
		conn := dial(t, s.addr)
		if reason == "idle_time" {
			conn.Write(doq.Frame(packed(t, query("www."))))
		}
		closedAfter(t, conn, time.Now(), 0)
		if n := limitedTo(s, reason) - before; n != 1 {
			t.Errorf("%s: counted %d", reason, n)
		}
	}
}

// TestEachSchemeLateWriter has a handler write twice from a goroutine of its own, while ServeDNS returns. Where a query ends
// with ServeDNS the reply may come too late, but nothing is torn. It is for the race detector.
func TestEachSchemeLateWriter(t *testing.T) {
	eachScheme(t, func(t *testing.T, scheme string) {
		var writing sync.WaitGroup
		var asked atomic.Int32
		late := handler{"late", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			asked.Add(1)
			writing.Go(func() {
				echo.serve(context.Background(), w, r)
				echo.serve(context.Background(), w, r)
			})
			return 0, nil
		}}
		s := serving(t, blockFor(t, scheme, late))
		c := clients.Connect(t, scheme, s.addr)
		for i := range 10 {
			name := fmt.Sprintf("n%d.", i)
			r, err := c.Ask(query(name))
			switch {
			case err == nil && (describe(r) != "NOERROR 192.0.2.1" || r.Question[0].Name != name):
				t.Errorf("%s: got %s", name, describe(r))
			case err != nil && (scheme == "dns" || scheme == "tls"):
				t.Errorf("%s: %v", name, err)
			}
		}
		writing.Wait()
		if n := asked.Load(); n < 10 {
			t.Errorf("the handler was called %d times", n)
		}
	})
}
