package recurse

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// What is kept, or follows from it, is answered though no more recursions may begin; what is not, is not.
func TestAnswersAtTheLimit(t *testing.T) {
	s := defaults()
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver("limit")}
	r.start()
	t.Cleanup(r.stop)
	r.maxRecursions = 0
	now, zone := r.now(), rrset.MustName("example.org.")
	www := rrset.New(rrset.MustName("www.example.org."), dns.TypeA, 300, "\xc0\x00\x02\x01")
	r.conf.Stores.RRsets.Put(www.Name, dns.TypeA, &store.Entry{Rank: store.AnswerData, Set: www, TTL: 300, Expires: now.After(300)}, now)
	r.denials.Learn(nil, zone, signed(t, 3, "*.wild.example.org. 300 IN NSEC z.example.org. A RRSIG NSEC"), now.After(200))
	r.denials.Learn(nil, zone, signed(t, 3, "x.wild.example.org. 300 IN A 192.0.2.1"), now.After(100))
	for _, c := range []struct {
		name    string
		answers int // records, with DO; -1 for no answer
		ede     uint16
	}{{"www.example.org.", 1, 0}, {"y.wild.example.org.", 2, 29}, {"other.example.org.", -1, 0}} {
		m := new(dns.Msg).SetQuestion(c.name, dns.TypeA)
		m.SetEdns0(1232, true)
		w := dnstest.NewRecorder(&test.ResponseWriter{})
		_, _ = r.ServeDNS(context.Background(), w, m)
		switch {
		case w.Msg == nil && c.answers < 0:
		case w.Msg == nil || len(w.Msg.Answer) != c.answers:
			t.Errorf("%s: %v", c.name, w.Msg)
		case c.ede != 0 && (w.Msg.IsEdns0().Option[0].(*dns.EDNS0_EDE).InfoCode != c.ede || w.Msg.Answer[0].Header().Ttl > 100 || len(w.Msg.Ns) != 2):
			t.Errorf("%s: %v", c.name, w.Msg)
		case c.answers > 0:
			countsOPT(t, r, m)
		}
	}
}

// countsOPT fails if the reply to m has options in the wire lane, but no OPT record that counts, as a message has.
func countsOPT(t *testing.T, r *Recurse, m *dns.Msg) {
	t.Helper()
	a, err := plugin.NewWireAdapter(&test.ResponseWriter{}, m)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Free()
	out := r.ServeWire(context.Background(), &a.Reply, &a.Query)
	if _, counted := a.Reply.OPT(); out != wire.Done || counted != (len(a.Reply.Options()) > 0) {
		t.Errorf("%s: %v, counted %v, options %x", m.Question[0].Name, out, counted, a.Reply.Options())
	}
}

// Where servers tell for one network only, what a wildcard was expanded to says nothing to others.
func TestTailoredWildcards(t *testing.T) {
	s := defaults()
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver("tailored")}
	now, zone := r.now(), rrset.MustName("example.org.")
	for _, ecs := range []bool{true, false} {
		if r.conf.Subnets = nil; ecs {
			r.conf.Subnets = []string{rrset.MustName("wild.example.org.")}
		}
		r.Learn(nil, "", false, secureOf(zone, signed(t, 3, "*.wild.example.org. 300 IN NSEC z.example.org. A RRSIG NSEC"), signed(t, 3, "x.wild.example.org. 300 IN A 192.0.2.1")))
		if e := r.denials.Answer(rrset.MustName("y.wild.example.org."), dns.TypeA, now); (e == nil) != ecs {
			t.Errorf("ecs %v: %+v", ecs, e)
		}
	}
}

func secureOf(zone string, sets ...*rrset.Set) (all []advice.Secure) {
	for _, s := range sets {
		all = append(all, advice.Secure{Set: s, Zone: zone, TTL: 300})
	}
	return all
}

// An alias that is kept is followed, and not asked for again, though what it leads to is not kept.
func TestKeptAliasIsFollowed(t *testing.T) {
	s := defaults()
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver("alias")}
	now := r.now()
	for _, c := range []struct {
		name string
		want finding
	}{{"alias.example.org.", alias}, {"www.example.org.", answered}, {"other.example.org.", nothing}} {
		for _, set := range []*rrset.Set{
			rrset.New(rrset.MustName("alias.example.org."), dns.TypeCNAME, 300, rrset.MustName("target.example.org.")),
			rrset.New(rrset.MustName("www.example.org."), dns.TypeA, 300, "\xc0\x00\x02\x01"),
		} {
			r.conf.Stores.RRsets.Put(set.Name, set.Type, &store.Entry{Rank: store.AnswerData, Set: set, TTL: 300, Expires: now.After(300)}, now)
		}
		packet, err := new(dns.Msg).SetQuestion(c.name, dns.TypeA).Pack()
		if err != nil {
			t.Fatal(err)
		}
		var q wire.Query
		var w wire.Reply
		w.Reset(nil)
		if !q.Parse(packet) {
			t.Fatal("the query is none for the lane")
		}
		if got := r.atOnce(&w, &q, nil); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// Who found to be secure what an answer is made of vouches for it, and for no answer that is kept.
func TestAnswersAreVouchedFor(t *testing.T) {
	s := defaults()
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver("vouched")}
	now, zone := r.now(), rrset.MustName("example.org.")
	www := rrset.New(rrset.MustName("www.example.org."), dns.TypeA, 300, "\xc0\x00\x02\x01")
	r.conf.Stores.RRsets.Put(www.Name, dns.TypeA, &store.Entry{Rank: store.AnswerData, Set: www, TTL: 300, Expires: now.After(300)}, now)
	me := new(int)
	r.Learn(me, "", false, secureOf(zone, signed(t, 2, "example.org. 300 IN SOA a. b. 1 2 3 4 300"), signed(t, 2, "example.org. 300 IN NSEC z.example.org. SOA NS RRSIG NSEC")))
	for name, by := range map[string]any{"b.example.org.": me, "www.example.org.": nil} {
		packet, err := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
		if err != nil {
			t.Fatal(err)
		}
		var q wire.Query
		var w wire.Reply
		if w.Reset(nil); !q.Parse(packet) || r.ServeWire(context.Background(), &w, &q) != wire.Done || w.Vouched() != by {
			t.Errorf("%s: vouched for by %v, want %v; rcode %d", name, w.Vouched(), by, w.Rcode())
		}
	}
}
