package validator

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// payer is a source that counts queries to servers, as a resolver does: each answer takes some, of most in all.
type payer struct {
	*wireSource
	each, most int
	octets     int // of each
	refused    int
}

func (p *payer) WireSelf() plugin.Handler { return p }

func (p *payer) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	s := advice.Of(ctx)
	if s.Purse.Empty() {
		p.refused++
		return dns.RcodeServerFailure, errNoReply
	}
	s.Pay(advice.Cost{Queries: p.each, Octets: p.octets}, advice.Cost{Queries: p.most, Octets: 100})
	return p.source.ServeDNS(ctx, w, r)
}

// All that is asked for the sake of a client is paid from one purse: keys, and what is asked of other servers once more.
// That it is empty says nothing of a zone to others.
func TestPurse(t *testing.T) {
	v, src := lab(t, "")
	p := &payer{wireSource: &wireSource{source: src}, each: 2, most: 2}
	v.Next = p
	if m, rcode, err := ask(t, v, "www.example.", do); m != nil || rcode != dns.RcodeServerFailure || err == nil || src.asked != 1 || p.refused != 1 {
		t.Errorf("with no query left for keys: %v %d %v, %d answers, %d refused", m, rcode, err, src.asked, p.refused)
	}
	src.asked, p.refused, p.most = 0, 0, 3
	if m, _, err := ask(t, v, "bad.example.", do); m != nil || err == nil || src.asked != 2 || p.refused != 0 {
		t.Errorf("with none left for other servers: %v %v, %d answers, %d refused", m, err, src.asked, p.refused)
	}
	src.asked, p.most = 0, 128
	if m, _, err := ask(t, v, "alias.example.", func(m *dns.Msg) { do(m); m.Question[0].Qtype = dns.TypeCNAME }); err != nil || m == nil || !m.AuthenticatedData {
		t.Errorf("another name, for another client: %v %v", m, err)
	}
	v, src = lab(t, "")
	p = &payer{wireSource: &wireSource{source: src}, each: 1, most: 128, octets: 100}
	v.Next = p
	if m, _, err := ask(t, v, "www.example.", do); m != nil || err == nil || src.asked != 1 || p.refused != 1 {
		t.Errorf("with no octet left for keys: %v %v, %d answers, %d refused", m, err, src.asked, p.refused)
	}
}

// In the wire lane it begins with what the answer took.
func TestPurseInTheLane(t *testing.T) {
	for queries, want := range map[int]int{1: dns.RcodeSuccess, 3: dns.RcodeServerFailure} {
		v, src := lab(t, "")
		p := &payer{wireSource: &wireSource{source: src, replies: map[string]*wire.Packed{}}, each: 1, most: 3}
		v.Next = p
		packet, err := new(dns.Msg).SetQuestion("www.example.", dns.TypeA).Pack()
		if err != nil {
			t.Fatal(err)
		}
		var w wire.Reply
		var q wire.Query
		waits := eventloop.Exchange(&told{zone: "example.", queries: queries})
		for out := wire.Park; out == wire.Park; {
			w.Reset(nil)
			q.Parse(packet)
			q.Await(waits)
			if out = v.ServeWire(context.Background(), &w, &q); out == wire.Park {
				waits = q.Awaited()
				resumed := make(eventloop.Waiter)
				q.Wait(resumed)
				<-resumed
			}
		}
		if rcode := w.Rcode(); rcode != want {
			t.Errorf("after %d queries: %s, want %s", queries, dns.RcodeToString[rcode], dns.RcodeToString[want])
		}
	}
}
