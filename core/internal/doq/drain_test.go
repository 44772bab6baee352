package doq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clients"
)

// A query is counted once, by its server and by its connection, whatever it waits for.
func TestCountsOnce(t *testing.T) {
	g := coretest.NewGate(t)
	s := serve(t, g, 100, nil)
	c := clients.DialQUIC(t, s.addr)
	done := make(chan error, 1)
	go func() {
		_, err := c.Ask(coretest.Query("slow."))
		done <- err
	}()
	g.Holds(t, 1)
	if n := s.Inflight.Count(); n != 1 {
		t.Errorf("its server counts %d", n)
	}
	g.Open()
	if err := <-done; err != nil {
		t.Error(err)
	}
	eventually.Holds(t, "none is in flight", func() bool { return !s.Inflight.Busy() })
}

// Queries that wait for others to be answered first are answered when the server stops.
func TestStopAnswersWhoWaitsForAWorker(t *testing.T) {
	g := coretest.NewGate(t)
	s := serve(t, g, 1, nil)
	busy, waits := clients.DialQUIC(t, s.addr), clients.DialQUIC(t, s.addr)
	done := make(chan error, 2)
	ask := func(c *clients.QUICClient) {
		go func() {
			_, err := c.Ask(coretest.Query("slow."))
			done <- err
		}()
	}
	ask(busy)
	g.Holds(t, 1)
	ask(waits)
	ended := coretest.Stopping(t, s.end)
	g.Open()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	ended()
}

// A query that has come only in part is waited for when the server stops.
func TestStopAnswersWhatHasComeInPart(t *testing.T) {
	s := serve(t, coretest.Echo, 100, nil)
	c := clients.DialQUIC(t, s.addr)
	packet := framed(t, query("www."))
	stream := send(t, c.Conn, packet[:5], false)
	if _, err := c.Ask(coretest.Query("www.")); err != nil { // which comes behind the other one
		t.Fatal(err)
	}
	ended := coretest.Stopping(t, s.end)
	time.Sleep(4 * service.DrainTime) // nothing comes for longer than a connection without queries is kept
	stream.Write(packet[5:])
	stream.Close()
	if _, err := clients.ReadFrame(stream); err != nil {
		t.Error(err)
	}
	ended()
}

// A client that never pauses does not delay the end: after a while only what was asked before is waited for. What it asks
// meanwhile is answered, if that is done sooner.
func TestStopEndsWhoNeverPauses(t *testing.T) {
	slow, late := coretest.NewGate(t), coretest.NewGate(t)
	s := serve(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		switch r.Question[0].Name {
		case "slow.":
			return slow.ServeDNS(ctx, w, r)
		case "slow2.":
			return late.ServeDNS(ctx, w, r)
		}
		return coretest.Echo(ctx, w, r)
	}), 100, nil)
	c := clients.DialQUIC(t, s.addr)
	first := send(t, c.Conn, framed(t, query("slow.")), true)
	slow.Holds(t, 1)
	ended := coretest.Stopping(t, s.end)
	time.Sleep(1500 * time.Millisecond) // as long as all is waited for, and longer
	last := send(t, c.Conn, framed(t, query("slow2.")), true)
	late.Holds(t, 1)
	if _, err := c.Ask(coretest.Query("www.")); err != nil {
		t.Errorf("what is answered meanwhile: %v", err)
	}
	slow.Open()
	if _, err := clients.ReadFrame(first); err != nil {
		t.Errorf("what was asked before: %v", err)
	}
	var told *quic.ApplicationError
	if _, err := clients.ReadFrame(last); !errors.As(err, &told) || told.ErrorCode != CodeNoError {
		t.Errorf("the last: got %v", err)
	}
	late.Open()
	ended()
}

// A client that has begun to connect gets its answer when the server stops.
func TestStopWithinHandshake(t *testing.T) {
	s := serve(t, new(coretest.Lane), 100, nil)
	l := coretest.NewLink(t, s.addr, coretest.FarAway, 0)
	done := make(chan error, 1)
	go func() {
		config := clients.Trusting.Clone()
		config.NextProtos = []string{"doq"}
		ctx, cancel := context.WithTimeout(t.Context(), clients.AskTime)
		defer cancel()
		conn, err := quic.DialAddr(ctx, l.Addr(), config, nil)
		if err == nil {
			_, err = (&clients.QUICClient{Conn: conn}).Ask(coretest.Query("www."))
		}
		done <- err
	}()
	l.Reached(t)
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
