package cache

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// mutable is a plugin whose zones change at any time.
type mutable struct {
	bothLanes
	zones []string
}

func (m *mutable) Name() string               { return "mutable" }
func (m *mutable) WireSelf() plugin.Handler   { return m }
func (m *mutable) CacheBypassZones() []string { return m.zones }

// Names in zones that change at any time are not kept, in either lane; others are.
func TestBypass(t *testing.T) {
	u := newUpstream(t, 0)
	s := serve(t, ".:0 {\nbind 127.0.0.1\nbothlanes\ncache\nmutable Example.org. sub.example.net\nforward . "+u.addr+"\n}")
	messages := byMessage.Load()
	for name, asked := range map[string]int64{
		"example.org.": 4, "WWW.example.org.": 4, "a.sub.example.net.": 4, "example.net.": 1, "xexample.org.": 1, "org.": 1,
	} {
		before := u.asked.Load()
		for id := range uint16(4) {
			if r := s.ask(new(dns.Msg).SetQuestion(name, dns.TypeA), id); r == nil || len(r.Answer) != 1 {
				t.Errorf("%s: got %v", name, r)
			}
		}
		if n := u.asked.Load() - before; n != asked {
			t.Errorf("%s: the upstream was asked %d times, want %d", name, n, asked)
		}
	}
	if n := byMessage.Load() - messages; n != 12+6 { // above the cache, and below it for names that are not kept
		t.Errorf("%d took the message lane", n)
	}
}

// What is no query passes by.
func TestOtherOpcodesPassBy(t *testing.T) {
	for _, opcode := range []int{dns.OpcodeNotify, dns.OpcodeUpdate, dns.OpcodeStatus} {
		w := newWorld(t, nil)
		w.oneLane = true
		w.says(0, aRecord)
		change := func(m *dns.Msg) { m.Opcode = opcode }
		for range 2 {
			w.ask("example.org.", dns.TypeA, change)
		}
		if n := w.asked.Load(); n != 2 {
			t.Errorf("opcode %d: asked %d times of 2", opcode, n)
		}
		var got *dns.Msg
		w.c.Next = plugin.HandlerFunc(func(_ context.Context, _ dns.ResponseWriter, r *dns.Msg) (int, error) {
			got = r
			return 0, nil
		})
		r := new(dns.Msg).SetUpdate("example.org.")
		if w.c.ServeDNS(t.Context(), &test.ResponseWriter{}, r); got != r {
			t.Errorf("the message was changed: %v", got)
		}
	}
}

// What another server signs for one client is nobody else's, and what the client gets of it is unchanged: signed queries pass by. A
// signature that nobody asked for is not kept, either.
func TestSignedRepliesPassBy(t *testing.T) {
	w := newWorld(t, nil)
	var last *dns.Msg
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		last = new(dns.Msg).SetReply(r)
		last.Answer = []dns.RR{test.A(aRecord)}
		last.Extra = []dns.RR{&dns.TSIG{Hdr: dns.RR_Header{Name: "key.", Rrtype: dns.TypeTSIG, Class: dns.ClassANY}, Algorithm: dns.HmacSHA256, MACSize: 2, MAC: "abcd"}}
		return 0, rw.WriteMsg(last)
	})
	sign := func(m *dns.Msg) { m.SetTsig("key.", dns.HmacSHA256, 300, 0) }
	for n, change := range []func(*dns.Msg){sign, sign, nil, nil} {
		m, _ := w.ask("example.org.", dns.TypeA, change)
		if asked := w.asked.Load(); asked != int64(n+1) || m == nil || m.IsTsig() == nil || m.String() != last.String() {
			t.Errorf("query %d: asked %d times, got %v", n, asked, m)
		}
	}
	w.says(0, aRecord)
	if m, _ := w.ask("example.org.", dns.TypeA, nil); m.IsTsig() != nil {
		t.Error("a signature was kept")
	}
}
