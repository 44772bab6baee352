package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A query that found an entry fetches it again, unless that has been done in between: another one that is given in its place has come.
func TestSuperseded(t *testing.T) {
	const nobody, answer, denial, failure = "nobody", "answer", "denial", "failure"
	for _, tc := range []struct {
		came   string
		after  int64 // seconds after the entry
		at     int64 // when it is looked at
		prefer bool
		want   bool
	}{
		{came: nobody, at: 301},
		{came: answer, after: 290, at: 301, want: true},
		{came: answer, after: 290, at: 301, want: true, prefer: true},
		{came: denial, after: 290, at: 301, want: true},
		{came: denial, after: 290, at: 301, prefer: true}, // the entry goes before it
		{came: denial, after: 0, at: 301},                 // it is no newer
		{came: denial, after: 100, at: 100 + 60 + 3600},   // it has ended, and is not even given as an old one
		{came: failure, after: 301, at: 302},              // the old entry goes before it
	} {
		w := newWorld(t, func(s *settings) { s.stale, s.preferPositive = time.Hour, tc.prefer })
		w.says(0, aRecord)
		w.ask("example.org.", dns.TypeA, nil)
		e := w.kept()
		comes := &entry{hash: e.hash, about: e.about, packed: e.packed, kind: e.kind, answers: true, ttl: e.ttl, stored: e.stored + moment(tc.after)*moment(time.Second)}
		switch tc.came {
		case answer:
			w.c.positive.add(comes)
		case denial:
			comes.kind, comes.answers, comes.ttl = kind(response.NameError), false, 60
			w.c.negative.add(comes)
		case failure:
			comes.kind, comes.answers, comes.ttl = kind(response.ServerError), false, 5
			w.c.negative.add(comes)
		}
		w.clock.Store(tc.at)
		if got := w.c.superseded(e); got != tc.want {
			t.Errorf("%+v: superseded: %v", tc, got)
		}
		if begun := w.c.beginRefresh(e, w.c.countsOf(t.Context())); begun == tc.want || e.fetch.running.Load() != begun {
			t.Errorf("%+v: a refresh begins: %v, and runs: %v", tc, begun, e.fetch.running.Load())
		}
	}
}

// What is fetched again is asked for with the address of who made it due: of what plugins look up for it, acl wants to
// know for whom.
func TestRefreshIsForTheClient(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.stale = time.Hour })
	w.says(0, aRecord)
	w.ask("example.org.", dns.TypeA, nil)
	from := make(chan string, 2)
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		from <- rw.RemoteAddr().Network() + " " + rw.RemoteAddr().String()
		m := new(dns.Msg).SetReply(r)
		m.Truncated = true
		return 0, rw.WriteMsg(m)
	})
	w.c.refresh(t.Context(), &test.ResponseWriter{RemoteIP: "192.0.2.7"}, new(dns.Msg).SetQuestion("example.org.", dns.TypeA), w.kept(), w.c.countsOf(t.Context()), 0)
	for _, network := range []string{"udp", "tcp"} {
		if got, want := <-from, network+" 192.0.2.7:40212"; got != want {
			t.Errorf("asked from %s, want %s", got, want)
		}
	}
	eventually.Holds(t, "the end of the refresh", func() bool { return !w.kept().fetch.running.Load() })
}

// A panic below ends a verification: the next one may begin.
func TestVerifyPanics(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.stale, s.verify, s.failureRecheck = time.Hour, true, time.Second })
	w.oneLane = true
	w.says(0, aRecord)
	w.ask("example.org.", dns.TypeA, nil)
	w.clock.Store(400)
	w.below(func(dns.ResponseWriter, *dns.Msg) (int, error) { panic("as it should") })
	func() {
		defer func() { recover() }()
		w.ask("example.org.", dns.TypeA, nil)
	}()
	if w.kept().fetch.running.Load() {
		t.Error("the verification goes on for ever")
	}
}

// Where nobody can verify an old answer, as all who may wait are at work, it is given.
func TestVerifyInACrowd(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.stale, s.verify, s.staleTTL = time.Hour, true, 7 })
	w.oneLane = true
	w.says(0, aRecord)
	w.ask("example.org.", dns.TypeA, nil)
	w.clock.Store(400)
	q := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
	if m := w.onlyWire(q); m != nil {
		t.Errorf("it is not verified: %v", m)
	}
	before := eventloop.SetAllAtWork(func() bool { return true })
	defer eventloop.SetAllAtWork(before)
	if m := w.onlyWire(q); m == nil || len(m.Answer) != 1 || m.Answer[0].Header().Ttl != 7 {
		t.Errorf("got %v", m)
	}
}

// An old answer is fetched again also after a fetch of it that came back with an error.
func TestRefreshAfterError(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.stale = time.Hour })
	w.oneLane = true
	w.says(0, aRecord)
	w.ask("example.org.", dns.TypeA, nil)
	w.says(dns.RcodeServerFailure)
	for i := range int64(3) {
		w.clock.Store(400 + i)
		if m, _ := w.ask("example.org.", dns.TypeA, nil); m == nil || m.Rcode != 0 {
			t.Fatalf("got %v", m)
		}
		eventually.Holds(t, "the end of a fetch", func() bool { return w.asked.Load() == 2+i && !w.kept().fetch.running.Load() })
	}
}

// A reply that is cut is no reason to give an old answer: it is asked for over TCP, with a time for that or without.
func TestVerifyOverTCP(t *testing.T) {
	for _, timeout := range []time.Duration{0, 5 * time.Second} {
		w := newWorld(t, func(s *settings) { s.stale, s.verify, s.verifyTimeout = time.Hour, true, timeout })
		w.oneLane = true
		w.says(0, aRecord)
		w.ask("example.org.", dns.TypeA, nil)
		w.clock.Store(400)
		w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
			m := new(dns.Msg).SetReply(r)
			if m.Truncated = rw.RemoteAddr().Network() == "udp"; !m.Truncated {
				m.Answer = []dns.RR{test.A("example.org. 300 IN A 192.0.2.99")}
			}
			return 0, rw.WriteMsg(m)
		})
		for range 2 {
			if m, _ := w.ask("example.org.", dns.TypeA, nil); m == nil || len(m.Answer) != 1 || m.Answer[0].(*dns.A).A.String() != "192.0.2.99" {
				t.Errorf("timeout %v: got %v", timeout, m)
			}
		}
	}
}

// Who asks for the same old answer at one time waits for one verification of it, and gets what that found out.
func TestVerificationsAreShared(t *testing.T) {
	const n = 20
	down := errors.New("nobody is there")
	for _, timeout := range []time.Duration{0, 5 * time.Second} {
		for _, tc := range []struct {
			what  string
			below func(rw dns.ResponseWriter, r *dns.Msg) (int, error)
			want  string
			asked int64
		}{
			{"an answer", func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
				m := new(dns.Msg).SetReply(r)
				m.Answer = []dns.RR{test.A("example.org. 300 IN A 192.0.2.99")}
				return 0, rw.WriteMsg(m)
			}, "0 NOERROR 192.0.2.99", 1},
			{"an answer that is not kept", func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
				return 0, rw.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNameError))
			}, "0 NXDOMAIN", n},
			{"a failure", func(dns.ResponseWriter, *dns.Msg) (int, error) {
				return dns.RcodeServerFailure, down
			}, "0 NOERROR 192.0.2.1", 1},
			{"an error", func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
				return 0, rw.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeServerFailure))
			}, "0 NOERROR 192.0.2.1", 1},
			{"bogus data", func(dns.ResponseWriter, *dns.Msg) (int, error) {
				return dns.RcodeServerFailure, explained{dns.ExtendedErrorCodeDNSBogus}
			}, "2", 1},
		} {
			w := newWorld(t, func(s *settings) { s.stale, s.verify, s.verifyTimeout = time.Hour, true, timeout })
			w.oneLane = true
			w.says(0, aRecord)
			w.ask("example.org.", dns.TypeA, nil)
			w.clock.Store(400)
			gate := make(chan struct{})
			w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
				<-gate
				return tc.below(rw, r)
			})
			before := w.asked.Load()
			misses := w.requests()
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					rec := dnstest.NewRecorder(&test.ResponseWriter{})
					rcode, _ := w.c.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion("example.org.", dns.TypeA))
					got := fmt.Sprint(rcode)
					if rec.Msg != nil {
						got += " " + dns.RcodeToString[rec.Msg.Rcode]
						for _, rr := range rec.Msg.Answer {
							got += " " + rr.(*dns.A).A.String()
						}
					}
					if got != tc.want {
						t.Errorf("%s within %v: got %s, want %s", tc.what, timeout, got, tc.want)
					}
				})
			}
			time.Sleep(50 * time.Millisecond) // all have come as far as they get
			close(gate)
			wg.Wait()
			if got := w.asked.Load() - before; got != tc.asked {
				t.Errorf("%s within %v: asked %d times, want %d", tc.what, timeout, got, tc.asked)
			}
			if got := w.requests() - misses; got != n {
				t.Errorf("%s within %v: %v hits and misses", tc.what, timeout, got)
			}
		}
	}
}

// An old denial is given to all who wait for a verification that brings an error, though that is kept.
func TestOldDenialsAreShared(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.stale, s.verify = time.Hour, true })
	w.oneLane = true
	w.says(dns.RcodeNameError, "ns example.org. 300 IN SOA a. b. 1 2 3 4 300")
	w.ask("example.org.", dns.TypeA, nil)
	w.clock.Store(400)
	gate := make(chan struct{})
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		<-gate
		return 0, rw.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeServerFailure))
	})
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			rec := dnstest.NewRecorder(&test.ResponseWriter{})
			w.c.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion("example.org.", dns.TypeA))
			if rec.Msg == nil || rec.Msg.Rcode != dns.RcodeNameError {
				t.Errorf("got %v", rec.Msg)
			}
		})
	}
	time.Sleep(50 * time.Millisecond) // all have come as far as they get
	close(gate)
	wg.Wait()
}

// requests is the hits and misses so far.
func (w *world) requests() float64 {
	n := w.c.countsOf(context.Background())
	return testutil.ToFloat64(n.misses.counter()) + testutil.ToFloat64(n.hits[0].counter()) + testutil.ToFloat64(n.hits[1].counter())
}

// explained is an error with an extended one.
type explained struct{ code uint16 }

func (explained) Error() string                     { return "explained" }
func (e explained) ExtendedError() (uint16, string) { return e.code, "" }

// coded is an error with an extended one.
type coded uint16

func (coded) Error() string                               { return "coded" }
func (c coded) ExtendedError() (code uint16, text string) { return uint16(c), "" }

// Errors of validation are those from DNSSEC Indeterminate (5) to NSEC Missing (12).
func TestIsBogus(t *testing.T) {
	for code, want := range map[coded]bool{0: false, 4: false, 5: true, 6: true, 12: true, 13: false, 22: false} {
		if isBogus(fmt.Errorf("wrapped: %w", code)) != want {
			t.Errorf("%d: %t", code, !want)
		}
	}
	if isBogus(nil) || isBogus(io.EOF) {
		t.Error("an error without a code is one of validation")
	}
}
