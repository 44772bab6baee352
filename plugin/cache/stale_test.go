package cache

import (
	"errors"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/miekg/dns"
)

func TestPrefetch(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.prefetch, s.percentage = 2, 10 })
	w.oneLane = true // else each hit would be two
	w.says(0, aRecord)
	w.count("example.org.", dns.TypeA)
	w.clock.Store(280)
	w.count("example.org.", dns.TypeA) // the first hit
	if w.asked.Load() != 1 {
		t.Fatal("fetched too early")
	}
	w.says(0, "example.org. 300 IN A 192.0.2.99")
	if _, ttl := w.count("example.org.", dns.TypeA); ttl != 20 {
		t.Errorf("TTL %d", ttl)
	}
	eventually.Holds(t, "prefetch", func() bool { return w.asked.Load() == 2 })
	eventually.Holds(t, "new entry", func() bool { _, ttl := w.count("example.org.", dns.TypeA); return ttl == 300 })
}

func TestServeStaleImmediate(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.stale, s.staleTTL = time.Hour, 7 })
	w.says(0, aRecord)
	w.count("example.org.", dns.TypeA)
	w.below(func(dns.ResponseWriter, *dns.Msg) (int, error) { return dns.RcodeServerFailure, errors.New("dead") })
	w.clock.Store(400)
	if _, ttl := w.count("example.org.", dns.TypeA); ttl != 7 {
		t.Errorf("TTL %d", ttl)
	}
	eventually.Holds(t, "refresh", func() bool { return w.asked.Load() >= 2 })
	w.clock.Store(300 + 3600)
	if m, rc := w.ask("example.org.", dns.TypeA, nil); m != nil || rc != dns.RcodeServerFailure {
		t.Errorf("an hour after its end: %v %d", m, rc)
	}
}

func TestServeStaleVerify(t *testing.T) {
	for _, timeout := range []time.Duration{0, 2 * time.Second} {
		w := newWorld(t, func(s *settings) { s.stale, s.verify, s.verifyTimeout = time.Hour, true, timeout })
		w.says(0, aRecord)
		w.count("example.org.", dns.TypeA)
		w.clock.Store(400)
		for _, unfit := range []func(){
			func() {
				w.below(func(dns.ResponseWriter, *dns.Msg) (int, error) {
					return dns.RcodeServerFailure, errors.New("dead")
				})
			},
			func() { w.says(dns.RcodeServerFailure) },
			func() { w.says(dns.RcodeRefused) },
		} {
			unfit()
			asked := w.asked.Load()
			if m, rc := w.ask("example.org.", dns.TypeA, nil); rc != 0 || m == nil || len(m.Answer) != 1 || m.Answer[0].Header().Ttl != 0 {
				t.Errorf("timeout %v: got %v %d", timeout, m, rc)
			}
			time.Sleep(10 * time.Millisecond)
			if n := w.asked.Load() - asked; n != 1 {
				t.Errorf("timeout %v: asked %d times", timeout, n)
			}
			w.c.negative.cut(w.kept())
		}
		w.says(0, "example.org. 300 IN A 192.0.2.99")
		if m, _ := w.ask("example.org.", dns.TypeA, nil); m == nil || m.Answer[0].(*dns.A).A.String() != "192.0.2.99" {
			t.Errorf("timeout %v: got %v", timeout, m)
		}
	}
}

func TestVerifyGivesUp(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.stale, s.verify, s.verifyTimeout = time.Hour, true, 20*time.Millisecond })
	w.says(0, aRecord)
	w.count("example.org.", dns.TypeA)
	w.clock.Store(400)
	release := make(chan struct{})
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		<-release
		m := new(dns.Msg).SetReply(r)
		rr, _ := dns.NewRR("example.org. 300 IN A 192.0.2.99")
		m.Answer = []dns.RR{rr}
		return 0, rw.WriteMsg(m)
	})
	if m, _ := w.ask("example.org.", dns.TypeA, nil); m == nil || m.Answer[0].(*dns.A).A.String() != "192.0.2.1" {
		t.Errorf("got %v", m)
	}
	close(release) // what comes late is kept all the same
	eventually.Holds(t, "late answer", func() bool {
		m, _ := w.ask("example.org.", dns.TypeA, nil)
		return m.Answer[0].(*dns.A).A.String() == "192.0.2.99"
	})
}

func TestFailureRecheck(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.stale, s.verify, s.failureRecheck = time.Hour, true, 30*time.Second })
	w.says(0, aRecord)
	w.count("example.org.", dns.TypeA)
	w.below(func(dns.ResponseWriter, *dns.Msg) (int, error) { return dns.RcodeServerFailure, errors.New("dead") })
	w.clock.Store(400)
	for i, want := range []int64{1, 0, 0} {
		if asked, _ := w.count("example.org.", dns.TypeA); asked != want {
			t.Errorf("query %d: asked %d times", i, asked)
		}
	}
	w.clock.Store(431)
	if asked, _ := w.count("example.org.", dns.TypeA); asked != 1 {
		t.Error("not asked again after the pause")
	}
}
