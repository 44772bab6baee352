package validator

import (
	"context"
	"crypto"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/steady"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// servers answers as a resolver with two servers: the first tells lies about some questions.
type servers struct {
	*source
	lies  map[string]bool // name and type
	told  []string
	learn []advice.Secure
}

var first, second = netip.MustParseAddrPort("192.0.2.1:53"), netip.MustParseAddrPort("192.0.2.2:53")

func (s *servers) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	zone, key := rrset.MustName("example."), r.Question[0].Name+dns.Type(r.Question[0].Qtype).String()
	o := advice.Of(ctx)
	by := first
	if o.Doubted(advice.Teller{Zone: zone, Server: by}) {
		if by = second; o.Doubted(advice.Teller{Zone: zone, Server: by}) {
			return dns.RcodeServerFailure, nil
		}
	}
	o.Add(advice.Teller{Zone: zone, Server: by})
	s.told = append(s.told, by.Addr().String()+" "+key)
	if by == first && s.lies[key] {
		return s.source.ServeDNS(ctx, liar{w}, r)
	}
	return s.source.ServeDNS(ctx, w, r)
}

func (s *servers) Learn(_ any, _ string, _ bool, all []advice.Secure) {
	s.learn = append(s.learn, all...)
}

// liar takes the signatures out.
type liar struct{ dns.ResponseWriter }

func (l liar) WriteMsg(m *dns.Msg) error {
	var kept []dns.RR
	for _, rr := range m.Answer {
		if rr.Header().Rrtype != dns.TypeRRSIG {
			kept = append(kept, rr)
		}
	}
	m.Answer = kept
	return l.ResponseWriter.WriteMsg(m)
}

// What is bogus at one server is asked of the other: the answer itself, or the keys, or both.
func TestOtherServers(t *testing.T) {
	for _, lies := range []string{"", "www.example.A", "example.DNSKEY", "www.example.A example.DNSKEY"} {
		v, src := lab(t, "")
		s := &servers{source: src, lies: map[string]bool{}}
		for _, l := range strings.Fields(lies) {
			s.lies[l] = true
		}
		v.Next, v.learner = s, s
		m, _, err := ask(t, v, "www.example.", do)
		if err != nil || m == nil || !m.AuthenticatedData {
			t.Errorf("lies about %q: %v %v, told by %q", lies, m, err, s.told)
		}
		if want := 2 + len(strings.Fields(lies)); len(s.told) > want+1 {
			t.Errorf("lies about %q: %d queries, want about %d: %q", lies, len(s.told), want, s.told)
		}
		if len(s.learn) == 0 {
			t.Errorf("lies about %q: nothing was learned", lies)
		}
	}
}

// three answers as a resolver with three servers, which it takes in turn: one has signatures of an answer, most often the last.
// What was told last is kept for who does not doubt it.
type three struct {
	*source
	good map[string]int
	told map[string]int // how often servers were asked
	kept map[string]int
}

func (s *three) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	key := r.Question[0].Name + dns.Type(r.Question[0].Qtype).String()
	for n := range 3 {
		by := advice.Teller{Zone: rrset.MustName("example."), Server: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n + 1)}), 53)}
		if kept, ok := s.kept[key]; ok && !advice.Of(ctx).Again() {
			n = kept
		} else if advice.Of(ctx).Doubted(by) {
			continue
		} else {
			s.told[key]++
		}
		s.kept[key] = n
		advice.Of(ctx).Add(by)
		if good, ok := s.good[key]; ok && n != good || !ok && n < 2 {
			w = liar{w}
		}
		return s.source.ServeDNS(ctx, w, r)
	}
	return dns.RcodeServerFailure, nil
}

// Two servers of three take signatures out: of keys, DS records and the answer. Each is asked of the third one, and none of
// a server twice (RFC 9520 §3.1).
func TestOneServerOfThree(t *testing.T) {
	_, src := lab(t, "")
	k := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "zone.example.", Rrtype: dns.TypeDNSKEY, Class: 1, Ttl: 300}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	p := generate(t, k)
	src.put(false, k.ToDS(dns.SHA256))
	for _, rr := range []dns.RR{k, test.A("www.zone.example. 300 IN A 192.0.2.1")} {
		g := &dns.RRSIG{
			Hdr: dns.RR_Header{Name: rr.Header().Name, Rrtype: dns.TypeRRSIG, Class: 1, Ttl: 300}, Algorithm: k.Algorithm, KeyTag: k.KeyTag(), SignerName: "zone.example.",
			Inception: uint32(time.Now().Add(-time.Hour).Unix()), Expiration: uint32(time.Now().Add(time.Hour).Unix()),
		}
		if err := g.Sign(p.(crypto.Signer), []dns.RR{rr}); err != nil {
			t.Fatal(err)
		}
		src.replies[rr.Header().Name+dns.Type(rr.Header().Rrtype).String()] = &dns.Msg{Answer: []dns.RR{rr, g}}
	}
	for what, good := range map[string]map[string]int{"all": nil, "chain": {"www.zone.example.A": 0}} {
		s := &three{source: src, good: good, told: map[string]int{}, kept: map[string]int{}}
		v := above(t, src, "")
		v.Next = s
		if m, _, err := ask(t, v, "www.zone.example.", do); err != nil || m == nil || !m.AuthenticatedData {
			t.Errorf("%s: %v %v, asked %v", what, m, err, s.told)
		}
		for q, n := range s.told {
			if n > 3 {
				t.Errorf("%s: servers were asked %d times for %s", what, n, q)
			}
		}
		if s.told["zone.example.DS"] < 3 {
			t.Errorf("%s: asked %v: no DS was doubted", what, s.told)
		}
	}
}

// Keys that all servers tell wrong are asked for again no sooner than after bogus_ttl, whatever name below is asked for.
func TestBrokenChainIsKept(t *testing.T) {
	v, src := lab(t, "")
	s := &servers{source: src}
	v.Next = plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if r.Question[0].Qtype == dns.TypeDNSKEY {
			w = liar{w}
		}
		return s.ServeDNS(ctx, w, r)
	})
	v.learner = s
	if m, _, err := ask(t, v, "www.example.", do); m != nil || err == nil {
		t.Fatalf("%v %v", m, err)
	}
	if n := len(s.told); n < 2 {
		t.Fatalf("no keys were asked for: %q", s.told)
	}
	s.told = nil
	if m, _, err := ask(t, v, "bad.example.", do); m != nil || err == nil || len(s.told) != 1 {
		t.Errorf("another name: %v %v, asked for %q", m, err, s.told)
	}
}

// A chain that breaks at one server only is not kept as broken while others are asked.
func TestBrokenChainIsKeptWhenAllWereAsked(t *testing.T) {
	v, src := lab(t, "")
	s := &servers{source: src, lies: map[string]bool{"example.DNSKEY": true}}
	v.Next, v.learner = plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if n := v.memory.Node(rrset.MustName("example."), time.Now()); n != nil && n.Broken() {
			t.Errorf("%v is asked for while the chain is kept as broken", r.Question[0])
		}
		return s.ServeDNS(ctx, w, r)
	}), s
	if m, _, err := ask(t, v, "www.example.", do); err != nil || m == nil || !m.AuthenticatedData {
		t.Errorf("%v %v, told by %q", m, err, s.told)
	}
}

// One client has found keys to be secure, another one meanwhile only servers that take signatures out: the keys count, unless
// they were known before and are doubted.
func TestOthersHadBetterLuck(t *testing.T) {
	zone, now := rrset.MustName("example."), time.Now()
	found := func(lies bool) *validate.Node {
		v, src := lab(t, "")
		v.Next = plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			if lies && r.Question[0].Qtype == dns.TypeDNSKEY {
				w = liar{w}
			}
			return src.ServeDNS(ctx, w, r)
		})
		_, _, _ = ask(t, v, "www.example.", do)
		return v.memory.Node(zone, now)
	}
	good, broken := found(false), found(true)
	if good == nil || good.Broken() || broken == nil || !broken.Broken() {
		t.Fatalf("found %+v and %+v", good, broken)
	}
	for _, before := range []bool{false, true} {
		m, want := newMemory(), good
		s := &skeptic{Memory: m, ctx: context.Background(), purse: new(advice.Purse)}
		if before {
			m.KeepNode(zone, good)
			want = broken
		}
		s.doubt(map[string]bool{zone: true}, now)
		s.KeepNode(zone, broken)
		if n := s.Node(zone, now); n != nil {
			t.Errorf("known before %v: %+v is believed", before, n)
		}
		if !before {
			m.KeepNode(zone, good)
			if n := s.Node(zone, now); n != good {
				t.Errorf("what others have found is %+v", n)
			}
		}
		s.settle(now)
		if n := m.Node(zone, now); n != want {
			t.Errorf("known before %v: %+v is kept, want %+v", before, n, want)
		}
	}
}

// What all servers tell wrong is asked for again no sooner than after bogus_ttl, but for who sets CD.
func TestBogusIsKept(t *testing.T) {
	v, src := lab(t, "")
	s := &servers{source: src}
	v.Next = s
	if m, _, err := ask(t, v, "bad.example.", do); m != nil || err == nil {
		t.Fatalf("%v %v", m, err)
	}
	n := len(s.told)
	if n > 2+1+restarts {
		t.Errorf("%d queries: %q", n, s.told)
	}
	for range 3 {
		if m, _, err := ask(t, v, "bad.example.", do); m != nil || err == nil || len(s.told) != n {
			t.Errorf("again: %v %v, %d queries", m, err, len(s.told)-n)
		}
	}
	k, ok := v.failures.get(questionOf(t, "bad.example."))
	if left := time.Until(k.until); !ok || left > time.Minute || left < 50*time.Second {
		t.Errorf("kept for %v", left)
	}
	k.until = time.Now().Add(-time.Second)
	v.failures.put(questionOf(t, "bad.example."), k, failureSize)
	if _, _, err := ask(t, v, "bad.example.", do); err == nil || len(s.told) == n {
		t.Errorf("after bogus_ttl: %v, no query", err)
	}
	if k, _ = v.failures.get(questionOf(t, "bad.example.")); time.Until(k.until) < 110*time.Second {
		t.Errorf("the second time kept for %v, want twice as long", time.Until(k.until))
	}
	for range 5 {
		k.until = time.Now().Add(-time.Second)
		v.failures.put(questionOf(t, "bad.example."), k, failureSize)
		_, _, _ = ask(t, v, "bad.example.", do)
		k, _ = v.failures.get(questionOf(t, "bad.example."))
	}
	if left := time.Until(k.until); left > 5*time.Minute || left < 5*time.Minute-10*time.Second {
		t.Errorf("in the end kept for %v, want five minutes", left)
	}
}

// What is asked for once more is paid from the same budget of hashes as what was asked for first.
func TestHashesOfRestarts(t *testing.T) {
	for _, tc := range []struct{ hashes, asked int }{
		{150, 1 + 3}, {7, 3}, {3, 2}, {2, 1}, // each reply takes three
	} {
		v, src := lab(t, fmt.Sprintf("budget nsec3_hashes %d", tc.hashes))
		nsec3, err := dns.NewRR("0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example. 300 IN NSEC3 1 0 0 - 0P9MHAVEQVM6T7VBL5LOP2U3T2RP3TON A RRSIG")
		if err != nil {
			t.Fatal(err)
		}
		src.put(false, nsec3)
		src.replies["a.b.example.A"] = &dns.Msg{MsgHdr: dns.MsgHdr{Rcode: dns.RcodeNameError}, Ns: src.replies[nsec3.Header().Name+"NSEC3"].Answer}
		n := 0
		v.Next = plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			if r.Question[0].Qtype == dns.TypeA {
				n++
			}
			return src.ServeDNS(ctx, w, r)
		})
		if m, _, err := ask(t, v, "a.b.example.", do); m != nil || err == nil {
			t.Fatalf("%v %v", m, err)
		}
		if n != tc.asked {
			t.Errorf("with %d hashes: asked %d times, want %d", tc.hashes, n, tc.asked)
		}
	}
}

// And so are looks at RRsets.
func TestLooksOfRestarts(t *testing.T) {
	for _, tc := range []struct{ looks, asked int }{{4000, 1 + 3}, {3, 3}, {2, 2}, {1, 1}} { // the first reply takes two, others one
		v, src := lab(t, "")
		v.conf.Budget.Looks = tc.looks
		v.trusts(&trust{anchors: v.live.Load().anchors})
		n := 0
		v.Next = plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			if r.Question[0].Qtype == dns.TypeA {
				n++
			}
			return src.ServeDNS(ctx, w, r)
		})
		if m, _, err := ask(t, v, "bad.example.", do); m != nil || err == nil {
			t.Fatalf("%v %v", m, err)
		}
		if n != tc.asked {
			t.Errorf("with %d looks: asked %d times, want %d", tc.looks, n, tc.asked)
		}
	}
}

// Many clients whose answer is bogus at one time have found one failure, which is kept as long as that of one.
func TestBogusAtOneTime(t *testing.T) {
	v, _ := lab(t, "")
	q := questionOf(t, "bad.example.")
	for range 20 {
		v.remember(q, &validate.Verdict{Finding: validate.Finding{Status: validate.Bogus}})
	}
	if k, ok := v.failures.get(q); !ok || time.Until(k.until) > time.Minute {
		t.Errorf("kept for %v", time.Until(k.until))
	}
}

// Replies that were cut, and are not to be had over TCP, are no proof that something is bogus: that is kept for a moment only.
func TestCutIsNotBogus(t *testing.T) {
	for name, cut := range map[string]uint16{"www.example.": dns.TypeDNSKEY, "bad.example.": dns.TypeA} {
		v, src := lab(t, "")
		v.Next = plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			if r.Question[0].Qtype != cut {
				return src.ServeDNS(ctx, w, r)
			}
			m := new(dns.Msg).SetReply(r)
			if m.Truncated = true; cut == dns.TypeA {
				m.Answer = src.replies["bad.example.A"].Answer[:1] // without its signature
			}
			return 0, w.WriteMsg(m)
		})
		src.replies["bad.example.DS"] = src.replies["sub.example.DS"]
		if m, _, err := ask(t, v, name, do); m != nil || err == nil {
			t.Errorf("%s was cut: %v %v", dns.Type(cut), m, err)
		}
		if k, ok := v.failures.get(questionOf(t, name)); !ok || time.Until(k.until) > shortFailure {
			t.Errorf("%s was cut: %+v, kept for %v", dns.Type(cut), k.finding, time.Until(k.until))
		}
		if n := v.memory.Node(rrset.MustName("example."), time.Now()); n != nil && n.Broken() {
			t.Errorf("%s was cut: %+v is kept", dns.Type(cut), n)
		}
	}
}

func questionOf(t *testing.T, name string) validate.Question {
	t.Helper()
	return validate.Question{Name: rrset.MustName(name), Type: dns.TypeA}
}

var _ plugin.Handler = (*servers)(nil)

// mute has no keys. It notes what it is asked for once more, and is a forwarder if it has an upstream.
type mute struct {
	*source
	upstream string
	again    map[string]bool
}

func (s *mute) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if d := advice.DetourOf(ctx); s.upstream != "" && d != nil {
		d.Took(s.upstream)
	}
	if advice.Of(ctx).Again() {
		s.again[r.Question[0].Name+dns.Type(r.Question[0].Qtype).String()] = true
	}
	return s.source.ServeDNS(ctx, w, r)
}

// What a resolver could not get from any server is not asked for once more, of the same ones (RFC 9520 §3.1). A
// forwarder may have other upstreams.
func TestVain(t *testing.T) {
	for _, upstream := range []string{"", "192.0.2.53:53"} {
		v, src := lab(t, "")
		delete(src.replies, "example.DNSKEY")
		s := &mute{source: src, upstream: upstream, again: map[string]bool{}}
		v.Next = s
		if m, rcode, err := ask(t, v, "www.example.", do); m != nil || rcode != dns.RcodeServerFailure || err == nil {
			t.Errorf("%v %d %v", m, rcode, err)
		}
		if !s.again["www.example.A"] || s.again["example.DNSKEY"] != (upstream != "") {
			t.Errorf("upstream %q: asked once more for %v", upstream, s.again)
		}
	}
}

// What was found out by a time that stands still, or before the machine was asleep, ends all the same.
func TestMemoryEnds(t *testing.T) {
	var fixed time.Time
	m, now := newMemory(), time.Minute
	m.passed = func() time.Duration { return now }
	m.KeepNode("long.", &validate.Node{Expires: fixed.Add(time.Hour)})
	m.KeepNode("short.", &validate.Node{Expires: fixed.Add(time.Second)})
	for _, want := range []struct {
		after       time.Duration
		long, short bool
	}{{0, true, true}, {time.Second, true, false}, {time.Hour, false, false}} {
		now = time.Minute + want.after
		if long, short := m.Node("long.", fixed) != nil, m.Node("short.", fixed) != nil; long != want.long || short != want.short {
			t.Errorf("after %v kept is %v, %v", want.after, long, short)
		}
	}
	if d := newMemory().passed() - steady.Passed(time.Now()); d.Abs() > time.Hour {
		t.Errorf("it is another clock, by %v", d)
	}
}
