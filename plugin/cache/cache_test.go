package cache

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// world is a cache on a clock of its own, above a plugin that answers what the test says.
type world struct {
	t     *testing.T
	c     *Cache
	clock atomic.Int64 // seconds since the test began
	asked atomic.Int64 // how often the plugin below was asked
	start time.Time

	oneLane bool // the wire lane is not asked, too

	mu     sync.Mutex
	answer func(w dns.ResponseWriter, r *dns.Msg) (int, error)
}

func newWorld(t *testing.T, change func(*settings)) *world {
	w := &world{t: t, c: New(), start: time.Now()}
	w.c.now = func() time.Time { return w.start.Add(time.Duration(w.clock.Load()) * time.Second) }
	if change != nil {
		change(&w.c.settings)
	}
	w.c.Next = plugin.HandlerFunc(func(_ context.Context, rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		w.asked.Add(1)
		w.mu.Lock()
		f := w.answer
		w.mu.Unlock()
		return f(rw, r)
	})
	return w
}

func (w *world) below(f func(w dns.ResponseWriter, r *dns.Msg) (int, error)) {
	w.mu.Lock()
	w.answer = f
	w.mu.Unlock()
}

// says makes the plugin below answer with rcode and records: "ns " and "ar " before one put it there.
func (w *world) says(rcode int, records ...string) {
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetRcode(r, rcode)
		m.RecursionAvailable = true
		for _, s := range records {
			section := &m.Answer
			if rest, ok := strings.CutPrefix(s, "ns "); ok {
				s, section = rest, &m.Ns
			} else if rest, ok := strings.CutPrefix(s, "ar "); ok {
				s, section = rest, &m.Extra
			}
			rr, err := dns.NewRR(s)
			if err != nil {
				w.t.Fatal(err)
			}
			*section = append(*section, rr)
		}
		return 0, rw.WriteMsg(m)
	})
}

// ask asks and returns the reply, nil if none was written, and the rcode of ServeDNS.
func (w *world) ask(name string, qtype uint16, change func(*dns.Msg)) (*dns.Msg, int) {
	w.t.Helper()
	m := new(dns.Msg).SetQuestion(name, qtype)
	if change != nil {
		change(m)
	}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rc, _ := w.c.ServeDNS(context.Background(), rec, m)
	w.onWire(m, rec.Msg)
	return rec.Msg, rc
}

// onWire compares with the wire lane, which answers what was just kept.
func (w *world) onWire(m, got *dns.Msg) {
	p, _ := m.Pack()
	var q wire.Query
	if got == nil || w.oneLane || !q.Parse(p) {
		return
	}
	var r wire.Reply
	r.Reset(make([]byte, 0, 4096))
	if w.c.ServeWire(context.Background(), &r, &q) != wire.Done {
		return
	}
	lane := new(dns.Msg)
	if err := lane.Unpack(r.Finish(&q, 1232)); err != nil {
		w.t.Fatal(err)
	}
	if len(lane.Answer) != len(got.Answer) || len(lane.Ns) != len(got.Ns) || lane.Rcode != got.Rcode || lane.AuthenticatedData != got.AuthenticatedData {
		w.t.Errorf("%s: lanes differ:\n%v\n%v", m.Question[0].Name, got, lane)
	}
}

// count asks and reports how many times the plugin below was asked for it, and the TTL of the
// first record of the reply, -1 without records.
func (w *world) count(name string, qtype uint16) (asked int64, ttl int) {
	w.t.Helper()
	before := w.asked.Load()
	m, _ := w.ask(name, qtype, nil)
	ttl = -1
	if m != nil {
		for _, rr := range append(m.Answer, m.Ns...) {
			ttl = int(rr.Header().Ttl)
			break
		}
	}
	return w.asked.Load() - before, ttl
}

const (
	aRecord = "example.org. 300 IN A 192.0.2.1"
	soa900  = "ns org. 900 IN SOA a.org. b.org. 1 2 3 4 60"
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

// changing changes messages before they are written.
type changing struct {
	dns.ResponseWriter
	change func(*dns.Msg)
}

func (c changing) WriteMsg(m *dns.Msg) error {
	m = m.Copy()
	c.change(m)
	return c.ResponseWriter.WriteMsg(m)
}

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

// kept is the positive entry of example.org. A.
func (w *world) kept() *entry {
	w.t.Helper()
	var q wire.Query
	q.SetMsg(new(dns.Msg).SetQuestion("example.org.", dns.TypeA), wire.Peer{})
	k := w.c.questionOf(&q)
	e := w.c.positive.get(&k.key)
	if e == nil {
		w.t.Fatal("no entry")
	}
	return e
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
	w.c.refresh(context.Background(), &noClient{}, new(dns.Msg).SetQuestion("example.org.", dns.TypeA), w.kept(), w.c.countsOf(context.Background()))
	eventually.Holds(t, "the empty answer", func() bool { return !w.kept().answers })
	if m, _ := w.ask("example.org.", dns.TypeA, nil); m.Rcode != 0 || len(m.Answer) != 1 {
		t.Errorf("got %v", m)
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
