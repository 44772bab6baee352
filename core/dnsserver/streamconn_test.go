package dnsserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

func TestStreamTimes(t *testing.T) {
	quick := func(scheme string) *served {
		cfg := blockFor(t, scheme, new(laneHandler))
		handshake := 150 * time.Millisecond
		cfg.Limits.Handshake = &handshake
		cfg.ReadTimeout, cfg.IdleTimeout = time.Second, 300*time.Millisecond
		return serving(t, cfg)
	}
	frame := AddPrefix(packed(t, query("www.")))

	t.Run("handshake", func(t *testing.T) {
		s := quick("tls")
		before := limitedTo(s, "handshake_time")
		begin := time.Now()
		c := dial(t, s.addr)
		io.WriteString(c, "\x16\x03\x01\x02\x00") // the begin of a record
		if !closedAfter(t, c, begin, 150*time.Millisecond) || limitedTo(s, "handshake_time") != before+1 {
			t.Errorf("after %v, counted %d", time.Since(begin), limitedTo(s, "handshake_time")-before)
		}
	})
	t.Run("first query", func(t *testing.T) {
		s := quick("dns")
		before := limitedTo(s, "read_time")
		begin := time.Now()
		if !closedAfter(t, dial(t, s.addr), begin, time.Second) || limitedTo(s, "read_time") != before+1 {
			t.Errorf("after %v", time.Since(begin))
		}
	})
	t.Run("next query", func(t *testing.T) {
		s := quick("dns")
		before := limitedTo(s, "idle_time")
		begin := time.Now()
		c := dial(t, s.addr)
		c.Write(frame)
		if !closedAfter(t, c, begin, 300*time.Millisecond) || limitedTo(s, "idle_time") != before+1 {
			t.Errorf("after %v", time.Since(begin))
		}
	})
	t.Run("dribble", func(t *testing.T) {
		s := quick("dns")
		before := limitedTo(s, "read_time")
		begin := time.Now()
		c := dial(t, s.addr)
		c.Write(frame)
		go func() {
			for _, b := range frame[:len(frame)-1] {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		}()
		if !closedAfter(t, c, begin, 300*time.Millisecond) || limitedTo(s, "read_time") != before+1 {
			t.Errorf("after %v", time.Since(begin))
		}
	})
	t.Run("a query at work", func(t *testing.T) {
		g := newGate(t)
		cfg := blockFor(t, "dns", g)
		cfg.IdleTimeout = 500 * time.Millisecond
		c := clients.DialFrames(t, serving(t, cfg).addr, nil)
		time.AfterFunc(2*cfg.IdleTimeout, g.open)
		for range 2 {
			if _, err := c.Ask(query("slow.")); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestStreamQueries(t *testing.T) {
	for _, lane := range []bool{true, false} {
		h := new(laneHandler)
		cfg := blockFor(t, "dns", h)
		name := "www."
		if !lane {
			name = "unpack."
		}
		three := 3
		cfg.MaxTCPQueries = &three
		s := serving(t, cfg)
		before := limitedTo(s, "queries")
		c := dial(t, s.addr)
		one := AddPrefix(packed(t, query(name)))
		c.Write([]byte(strings.Repeat(string(one), 5)))
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

func TestStreamQueryBytes(t *testing.T) {
	cfg := blockFor(t, "dns", new(laneHandler))
	most := 100
	cfg.Limits.QueryBytes = &most
	s := serving(t, cfg)
	before := limitedTo(s, "query_bytes")
	c := dial(t, s.addr)
	good := AddPrefix(packed(t, query("www.")))
	c.Write(append(append([]byte(nil), good...), AddPrefix(make([]byte, 101))...))
	if _, err := clients.ReadFrame(c); err != nil {
		t.Error(err)
	}
	closedAfter(t, c, time.Now(), 0)
	if limitedTo(s, "query_bytes") != before+1 {
		t.Error("not counted")
	}
}

// TestStreamUnread has a client ask and ask, and never read.
func TestStreamUnread(t *testing.T) {
	long := handler{"long", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetReply(r)
		for range 100 {
			m.Answer = append(m.Answer, &dns.TXT{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{strings.Repeat("x", 250)}})
		}
		return 0, w.WriteMsg(m)
	}}
	for name, h := range map[string]plugin.Handler{"long.": new(laneHandler), "message.": long} {
		cfg := blockFor(t, "dns", h)
		most := 64 << 10
		cfg.Limits.UnreadBytes = &most
		cfg.WriteTimeout = 300 * time.Millisecond
		s := serving(t, cfg)
		before := limitedTo(s, "write_time")
		c := dial(t, s.addr)
		c.(*net.TCPConn).SetReadBuffer(4096)
		one := AddPrefix(packed(t, query(name)))
		var err error
		for err == nil {
			_, err = c.Write([]byte(strings.Repeat(string(one), 1000)))
			if n := inFlight.n.Load(); n > 1<<20 {
				t.Fatalf("%d octets wait", n)
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection goes on", name)
		}
		if limitedTo(s, "write_time") == before {
			t.Errorf("%s: not counted", name)
		}
	}
	for end := time.Now().Add(clients.AskTime); inFlight.n.Load() != 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d octets are left in the ledger", inFlight.n.Load())
		}
	}
}

func TestInFlightBytes(t *testing.T) {
	cfg := blockFor(t, "dns", new(laneHandler))
	most := 2000
	cfg.Limits.InFlightBytes = &most
	defer inFlight.max.Store(MaxInFlightBytes)
	s := serving(t, cfg)
	before := limitedTo(s, "in_flight_bytes")
	if _, err := clients.DialFrames(t, s.addr, nil).Ask(query("www.")); err != nil {
		t.Errorf("a short one: %v", err)
	}
	if _, err := clients.DialFrames(t, s.addr, nil).Ask(query("long.")); err == nil || limitedTo(s, "in_flight_bytes") != before+1 {
		t.Errorf("a long one: %v", err)
	}
}

// TestStreamConnections has idle connections give way to new ones.
func TestStreamConnections(t *testing.T) {
	for _, scheme := range []string{"dns", "tls"} {
		g := newGate(t)
		cfg := blockFor(t, scheme, g)
		most, none := 5, 0
		cfg.Limits.Connections, cfg.Limits.ClientConnections = &most, &none
		s := serving(t, cfg)
		before := limitedTo(s, "connections")
		var busy []chan error
		for range 2 {
			done := make(chan error, 1)
			c := clients.Connect(t, scheme, s.addr)
			go func() {
				_, err := c.Ask(query("slow."))
				done <- err
			}()
			busy = append(busy, done)
		}
		g.holds(t, 2)
		for range 20 {
			dial(t, s.addr)
		}
		if _, err := clients.Connect(t, scheme, s.addr).Ask(query("www.")); err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
		g.open()
		for _, b := range busy {
			if err := <-b; err != nil {
				t.Errorf("%s: a connection at work was closed: %v", scheme, err)
			}
		}
		if n := limitedTo(s, "connections") - before; n != 18 {
			t.Errorf("%s: counted %d", scheme, n)
		}
	}
}

func TestStreamClientConnections(t *testing.T) {
	cfg := blockFor(t, "dns", new(laneHandler))
	most := 3
	cfg.Limits.ClientConnections = &most
	s := serving(t, cfg)
	before := limitedTo(s, "client_connections")
	for range most {
		dial(t, s.addr)
	}
	for range 7 {
		if _, err := dial(t, s.addr).Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("one too many: %v", err)
		}
	}
	time.Sleep(2 * idleTime)
	if _, err := clients.DialFrames(t, s.addr, nil).Ask(query("www.")); err != nil {
		t.Errorf("when the others have been idle: %v", err)
	}
	if n := limitedTo(s, "client_connections") - before; n != 8 {
		t.Errorf("counted %d", n)
	}
}

// TestPipelineIsBounded asks more than may be worked on at one time: all get answered.
func TestPipelineIsBounded(t *testing.T) {
	g := newGate(t)
	cfg := blockFor(t, "dns", g)
	most := 4
	cfg.Limits.Pipeline = &most
	c := dial(t, serving(t, cfg).addr)
	c.Write([]byte(strings.Repeat(string(AddPrefix(packed(t, query("slow.")))), 8)))
	g.holds(t, 4)
	time.Sleep(50 * time.Millisecond) // in which a fifth would come, most likely
	if n := g.waiting.Load(); n != 4 {
		t.Errorf("%d queries are at work at one time", n)
	}
	g.open()
	for range 8 {
		if _, err := clients.ReadFrame(c); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDoTProtocol(t *testing.T) {
	s := serving(t, blockFor(t, "tls", new(laneHandler)))
	for _, tc := range []struct {
		offered []string
		want    string
	}{{nil, ""}, {[]string{"dot"}, "dot"}, {[]string{"h2", "dot"}, "dot"}, {[]string{"h2"}, ""}} {
		c, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: tc.offered})
		if err != nil {
			t.Errorf("%v: %v", tc.offered, err)
			continue
		}
		if got := c.ConnectionState().NegotiatedProtocol; got != tc.want {
			t.Errorf("%v: got %q", tc.offered, got)
		}
		c.Close()
	}
}

// TestDoTConnectionState asks with a session of TLS, which handlers see.
func TestDoTConnectionState(t *testing.T) {
	seen := make(chan *tls.ConnectionState, 1)
	h := handlerWithState(seen)
	s := serving(t, blockFor(t, "tls", h))
	if _, err := clients.Connect(t, "tls", s.addr).Ask(query("www.")); err != nil {
		t.Fatal(err)
	}
	if state := <-seen; state == nil || !state.HandshakeComplete {
		t.Errorf("got %v", state)
	}
}

func handlerWithState(seen chan *tls.ConnectionState) handler {
	h := echo
	h.serve = func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		c, ok := w.(dns.ConnectionStater)
		if !ok {
			seen <- nil
		} else {
			seen <- c.ConnectionState()
		}
		return echo.serve(ctx, w, r)
	}
	return h
}

// handlerUntilCancelled waits until the context of its query ends.
func handlerUntilCancelled(began chan struct{}, cancelled chan error) handler {
	return handler{"waiting", func(ctx context.Context, _ dns.ResponseWriter, _ *dns.Msg) (int, error) {
		began <- struct{}{}
		select {
		case <-ctx.Done():
			cancelled <- ctx.Err()
		case <-time.After(clients.AskTime):
		}
		return dns.RcodeServerFailure, nil
	}}
}
