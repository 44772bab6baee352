package cache

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

func TestWhatIsKept(t *testing.T) {
	for _, tc := range []struct {
		what    string
		rcode   int
		records []string
		change  func(*dns.Msg)
		ttl     int // of the first reply's records
		kept    int // seconds; 0: not at all
	}{
		{"an answer", 0, []string{aRecord}, nil, 300, 300},
		{"mixed TTLs", 0, []string{aRecord, "example.org. 20 IN A 192.0.2.2", "ns org. 10 IN NS a.org."}, nil, 10, 10},
		{"a short TTL", 0, []string{"example.org. 1 IN A 192.0.2.1"}, nil, 5, 5},
		{"a long TTL", 0, []string{"example.org. 86400 IN A 192.0.2.1"}, nil, 3600, 3600},
		{"NXDOMAIN", dns.RcodeNameError, []string{soa900}, nil, 60, 60},
		{"NODATA", 0, []string{soa900}, nil, 60, 60},
		{"NXDOMAIN without SOA", dns.RcodeNameError, nil, nil, -1, 0},
		{"NXDOMAIN behind an alias", dns.RcodeNameError, []string{"example.org. 300 IN CNAME x.org.", soa900}, nil, 60, 60},
		{"NXDOMAIN behind an alias without SOA", dns.RcodeNameError, []string{"example.org. 300 IN CNAME x.org."}, nil, 300, 0},
		{"NODATA behind an alias", 0, []string{"example.org. 300 IN CNAME x.org.", soa900}, nil, 60, 60},
		{"an alias that leads nowhere", 0, []string{"example.org. 300 IN CNAME x.org."}, nil, 300, 0},
		{"an alias", 0, []string{"example.org. 300 IN CNAME x.org.", "x.org. 30 IN A 192.0.2.1"}, nil, 30, 30},
		{"a referral", 0, []string{"ns org. 900 IN NS a.org."}, nil, 5, 5},
		{"nothing at all", 0, nil, nil, -1, 5},
		{"SERVFAIL", dns.RcodeServerFailure, nil, nil, -1, 5},
		{"NOTIMP", dns.RcodeNotImplemented, nil, nil, -1, 5},
		{"REFUSED", dns.RcodeRefused, []string{"ns org. 900 IN NS a.org."}, nil, 900, 0},
		{"truncated", 0, []string{aRecord}, func(m *dns.Msg) { m.Truncated = true }, 300, 0},
		{"another question", 0, []string{aRecord}, func(m *dns.Msg) { m.Question[0].Name = "example.net." }, 300, 0},
		{"scoped to some clients", 0, []string{aRecord}, func(m *dns.Msg) {
			m.SetEdns0(4096, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, SourceScope: 24, Address: net.IPv4(192, 0, 2, 0)}}
		}, 300, 0},
	} {
		w := newWorld(t, nil)
		w.says(tc.rcode, tc.records...)
		if tc.change != nil {
			inner := w.answer
			w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
				return inner(changing{rw, tc.change}, r)
			})
		}
		if _, ttl := w.count("example.org.", dns.TypeA); ttl != tc.ttl {
			t.Errorf("%s: TTL %d, want %d", tc.what, ttl, tc.ttl)
		}
		if tc.kept > 0 {
			w.clock.Store(int64(tc.kept - 1))
			if asked, _ := w.count("EXAMPLE.org.", dns.TypeA); asked != 0 {
				t.Errorf("%s: not kept for %d s", tc.what, tc.kept)
			}
		}
		w.clock.Store(int64(tc.kept))
		if asked, _ := w.count("example.org.", dns.TypeA); asked != 1 {
			t.Errorf("%s: kept longer than %d s", tc.what, tc.kept)
		}
	}
}

func TestPositiveReplacesDenial(t *testing.T) {
	w := newWorld(t, nil)
	w.says(dns.RcodeServerFailure)
	w.count("example.org.", dns.TypeA)
	w.clock.Store(5)
	w.says(0, aRecord)
	w.count("example.org.", dns.TypeA)
	if w.c.negative.len() != 0 {
		t.Error("the denial is still there")
	}
	// An error does not hide an answer that is of use.
	denying := func(t response.Type) *entry {
		e := entryOf(w.kept().key())
		e.kind, e.ttl, e.stored = kind(t), 5, momentOf(w.c.now())
		return e
	}
	failure := denying(response.ServerError)
	w.c.negative.add(failure)
	asks := question{key: failure.key()}
	if e := w.c.lookup(&asks, w.c.now()); e == nil || e.kind != kind(response.NoError) {
		t.Errorf("got %v", e)
	}
	// A denial does.
	denial := denying(response.NoData)
	w.c.negative.add(denial)
	if e := w.c.lookup(&asks, w.c.now()); e != denial {
		t.Errorf("got %v", e)
	}
}

func TestKeepTTL(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.keepTTL = true })
	w.says(0, aRecord)
	w.count("example.org.", dns.TypeA)
	w.clock.Store(100)
	if asked, ttl := w.count("example.org.", dns.TypeA); asked != 0 || ttl != 300 {
		t.Errorf("asked %d, TTL %d", asked, ttl)
	}
	w.clock.Store(300)
	if asked, _ := w.count("example.org.", dns.TypeA); asked != 1 {
		t.Error("kept beyond its end")
	}
}

func TestPreferPositive(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.stale, s.preferPositive = time.Hour, true })
	w.says(0, aRecord)
	w.count("example.org.", dns.TypeA)
	w.clock.Store(400)
	w.says(dns.RcodeNameError, soa900)
	w.count("example.org.", dns.TypeA) // stale; the refresh gets a denial
	eventually.Holds(t, "the denial", func() bool { return w.c.negative.len() == 1 })
	if m, _ := w.ask("example.org.", dns.TypeA, nil); m.Rcode != 0 || len(m.Answer) != 1 {
		t.Errorf("got %v", m)
	}
	// An empty answer does not push out the good one.
	eventually.Holds(t, "the end of refreshes", func() bool { return !w.kept().fetch.running.Load() })
	w.says(0)
	w.c.refresh(context.Background(), &noClient{}, new(dns.Msg).SetQuestion("example.org.", dns.TypeA), w.kept(), w.c.countsOf(context.Background()), 0)
	eventually.Holds(t, "the empty answer", func() bool { return !w.kept().answers })
	if m, _ := w.ask("example.org.", dns.TypeA, nil); m.Rcode != 0 || len(m.Answer) != 1 {
		t.Errorf("got %v", m)
	}
}

func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		qtype   uint16
		records []string
		want    bool
	}{
		{"a.", dns.TypeA, []string{"a. 1 IN A 192.0.2.1"}, true},
		{"A.", dns.TypeA, []string{"a. 1 IN A 192.0.2.1"}, true},
		{"a.", dns.TypeA, []string{"b. 1 IN A 192.0.2.1"}, false},
		{"a.", dns.TypeA, []string{"a. 1 IN AAAA 2001:db8::1"}, false},
		{"a.", dns.TypeANY, []string{"a. 1 IN TXT x"}, true},
		{"a.", dns.TypeA, []string{"b. 1 IN A 192.0.2.1", "a. 1 IN CNAME B."}, true},
		{"a.", dns.TypeA, []string{"a. 1 IN CNAME b.", "b. 1 IN CNAME c.", "c. 1 IN A 192.0.2.1"}, true},
		{"a.", dns.TypeA, []string{"a. 1 IN CNAME b.", "b. 1 IN CNAME a."}, false},
		{"a.", dns.TypeA, []string{"a. 1 IN CNAME b.", "a. 1 IN CNAME c.", "b. 1 IN A 192.0.2.1"}, false},
		{"a.", dns.TypeA, []string{"a. 1 IN CNAME b.", "a. 2 IN CNAME b.", "b. 1 IN A 192.0.2.1"}, true},
		{"a.", dns.TypeCNAME, []string{"a. 1 IN CNAME b."}, true},
		{"a.", dns.TypeCNAME, []string{"a. 1 IN CNAME b.", "a. 1 IN CNAME c."}, false},
		{"x.a.", dns.TypeA, []string{"a. 1 IN DNAME b.", "x.b. 1 IN A 192.0.2.1"}, false},
		{"a.", dns.TypeA, []string{"a. 1 CH A 192.0.2.1"}, false},
	} {
		m := new(dns.Msg).SetQuestion(tc.name, tc.qtype)
		var q wire.Query
		if err := q.SetMsg(m, wire.Peer{}); err != nil {
			t.Fatal(err)
		}
		for _, s := range tc.records {
			rr, err := dns.NewRR(s)
			if err != nil {
				rr, _ = dns.NewRR(strings.Replace(s, "CH A", "CH TXT", 1))
			}
			m.Answer = append(m.Answer, rr)
		}
		var r wire.Reply
		r.Reset(nil)
		if err := r.SetMsg(m); err != nil {
			t.Fatal(err)
		}
		if got := answers(&r, &q); got != tc.want {
			t.Errorf("%s %d %q: got %v", tc.name, tc.qtype, tc.records, got)
		}
	}
}

func TestExpiredSignatures(t *testing.T) {
	c := New()
	for _, tc := range []struct {
		from, until string
		kept        bool
	}{{"20200101", "20200201", false}, {"20200101", "20380101", true}, {"20370101", "20380101", false}} {
		sig := "example.org. 300 IN RRSIG A 13 2 300 " + tc.until + "000000 " + tc.from + "000000 1 org. AAAA"
		if v := c.classifyOf(t, aRecord, sig); v.store != tc.kept {
			t.Errorf("signature from %s until %s: kept %v", tc.from, tc.until, v.store)
		}
	}
}

// classifyOf classifies a reply to example.org A that says DO.
func (c *Cache) classifyOf(t *testing.T, records ...string) verdict {
	t.Helper()
	m := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
	var q wire.Query
	q.SetMsg(m, wire.Peer{})
	for _, s := range records {
		rr, err := dns.NewRR(s)
		if err != nil {
			t.Fatal(err)
		}
		m.Answer = append(m.Answer, rr)
	}
	var r wire.Reply
	r.Reset(nil)
	if err := r.SetMsg(m); err != nil {
		t.Fatal(err)
	}
	return c.classify(&r, facts{question: &q, checkSigs: true, now: time.Now()})
}

// Referrals for who does not desire recursion are left to the resolver below, if it asks for that; those that a client got
// who does desire it are kept.
func TestReferralsAreLeft(t *testing.T) {
	ns, err := dns.NewRR("org. 300 IN NS a.org.")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ left, rd, kept bool }{{false, true, true}, {false, false, true}, {true, true, true}, {true, false, false}} {
		c := New()
		if tc.left {
			c.LeaveReferrals()
		}
		m := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
		m.RecursionDesired = tc.rd
		var q wire.Query
		q.SetMsg(m, wire.Peer{})
		m.Response, m.Ns = true, []dns.RR{ns}
		var r wire.Reply
		r.Reset(nil)
		if err := r.SetMsg(m); err != nil {
			t.Fatal(err)
		}
		if v := c.classify(&r, facts{question: &q, now: time.Now()}); v.kind != response.Delegation || v.store != tc.kept {
			t.Errorf("left %t, RD %t: a reply of kind %v, kept %t", tc.left, tc.rd, v.kind, v.store)
		}
	}
}
