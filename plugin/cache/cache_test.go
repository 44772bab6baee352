package cache

import (
	"context"
	"errors"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

func TestHit(t *testing.T) {
	w := newWorld(t, nil)
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		if !r.AuthenticatedData {
			t.Error("the plugin below is not asked for AD")
		}
		m := new(dns.Msg).SetReply(r)
		m.AuthenticatedData, m.RecursionAvailable = true, true
		rr, _ := dns.NewRR(aRecord)
		m.Answer = []dns.RR{rr}
		m.SetEdns0(4096, true)
		return 0, rw.WriteMsg(m)
	})
	m, _ := w.ask("example.org.", dns.TypeA, nil)
	if m.AuthenticatedData || m.IsEdns0() != nil || m.Authoritative {
		t.Errorf("a miss: %v", m)
	}
	w.clock.Store(10)
	m, rc := w.ask("eXample.ORG.", dns.TypeA, func(m *dns.Msg) { m.RecursionDesired = false; m.Id = 77 })
	if rc != 0 || m.Id != 77 || !m.Authoritative || !m.RecursionAvailable || m.RecursionDesired || m.AuthenticatedData {
		t.Errorf("a hit: %v", m.MsgHdr)
	}
	if rr := m.Answer[0].Header(); rr.Ttl != 290 || rr.Name != "eXample.ORG." {
		t.Errorf("a hit's record: %v", rr)
	}
	if m, _ = w.ask("example.org.", dns.TypeA, func(m *dns.Msg) { m.AuthenticatedData = true }); !m.AuthenticatedData {
		t.Error("AD is not told to who asks for it")
	}
	if w.asked.Load() != 1 {
		t.Errorf("asked %d times", w.asked.Load())
	}
	// DO, CD, type and class have entries of their own.
	for i, change := range []func(*dns.Msg){
		func(m *dns.Msg) { m.SetEdns0(4096, true) },
		func(m *dns.Msg) { m.CheckingDisabled = true },
		func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA },
		func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS },
	} {
		w.ask("example.org.", dns.TypeA, change)
		if got := w.asked.Load(); got != int64(i+2) {
			t.Errorf("change %d: asked %d times", i, got)
		}
	}
}

func TestOtherQueriesPass(t *testing.T) {
	w := newWorld(t, nil)
	w.c.Zones = []string{"example.org."}
	w.says(0, "example.net. 300 IN A 192.0.2.1")
	for range 2 {
		if asked, ttl := w.count("example.net.", dns.TypeA); asked != 1 || ttl != 300 {
			t.Errorf("asked %d, TTL %d", asked, ttl)
		}
	}
	// Errors that nobody wrote go up as they are.
	w.below(func(dns.ResponseWriter, *dns.Msg) (int, error) { return dns.RcodeServerFailure, errors.New("no") })
	if m, rc := w.ask("example.org.", dns.TypeA, nil); m != nil || rc != dns.RcodeServerFailure {
		t.Errorf("got %v %d", m, rc)
	}
}

func TestDisable(t *testing.T) {
	w := newWorld(t, func(s *settings) {
		s.success.disabled = [][]byte{wire.MustName("example.org")}
		s.denial.disabled = [][]byte{wire.MustName("example.net")}
	})
	w.says(0, "a.example.org. 1 IN A 192.0.2.1")
	for range 2 {
		if asked, ttl := w.count("a.example.org.", dns.TypeA); asked != 1 || ttl != 5 {
			t.Errorf("disabled answer: asked %d, TTL %d", asked, ttl)
		}
	}
	w.says(dns.RcodeNameError, soa900)
	w.count("b.example.org.", dns.TypeA)
	if asked, _ := w.count("b.example.org.", dns.TypeA); asked != 0 {
		t.Error("a denial of the zone is not kept")
	}
	w.count("b.example.net.", dns.TypeA)
	if asked, _ := w.count("b.example.net.", dns.TypeA); asked != 1 {
		t.Error("a disabled denial is kept")
	}
}

func TestRawWriteIsPassedOn(t *testing.T) {
	w := newWorld(t, nil)
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		b, _ := new(dns.Msg).SetReply(r).Pack()
		_, err := rw.Write(b)
		return 0, err
	})
	w.count("example.org.", dns.TypeA)
	if asked, _ := w.count("example.org.", dns.TypeA); asked != 1 {
		t.Error("a raw reply was kept")
	}
}

func BenchmarkServeWire(b *testing.B) {
	c := New()
	c.Next = plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetReply(r)
		rr, _ := dns.NewRR(r.Question[0].Name + " 300 IN A 192.0.2.1")
		m.Answer = []dns.RR{rr}
		return 0, w.WriteMsg(m)
	})
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	c.ServeDNS(context.Background(), dnstest.NewRecorder(&test.ResponseWriter{}), m)
	p, _ := m.Pack()
	var q wire.Query
	var w wire.Reply
	buf := make([]byte, 4096)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		q.Parse(p)
		w.Reset(buf)
		if c.ServeWire(ctx, &w, &q) != wire.Done {
			b.Fatal("not answered")
		}
		w.Finish(&q, 1232)
	}
}
