package validator

import (
	"context"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// wireSource is a source that answers in the wire lane, too.
type wireSource struct {
	*source
	replies map[string]*wire.Packed
}

func (s *wireSource) WireSelf() plugin.Handler { return s }

func (s *wireSource) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if !q.CD() || !q.DO() {
		w.Fail(wire.ServFail, errNoReply)
		return wire.Done
	}
	key := wire.Text(q.Lower()) + dns.Type(q.Type()).String()
	p := s.replies[key]
	if p == nil {
		m := s.source.replies[key]
		if m == nil {
			w.Fail(wire.ServFail, errNoReply)
			return wire.Done
		}
		m = m.Copy()
		m.AuthenticatedData = true // which is nobody's word to take
		m.Question = []dns.Question{{Name: wire.Text(q.Lower()), Qtype: q.Type(), Qclass: dns.ClassINET}}
		if err := w.SetMsg(m); err != nil {
			panic(err)
		}
		packed := w.Pack()
		p = &packed
		s.replies[key] = p
	}
	s.asked++
	w.Load(p, q)
	w.AddEDE(dns.ExtendedErrorCodeSynthesized, "")
	if m := s.source.replies[key]; m.Truncated {
		w.SetFlag(wire.FlagTC, true)
	}
	return wire.Done
}

// wired puts a source below v that answers in both lanes.
func wired(v *Validator, s *source) *Validator {
	v.Next = &wireSource{source: s, replies: map[string]*wire.Packed{}}
	return v
}

// serveWire runs a query in the wire lane until it is answered, and tells how often it was parked.
func serveWire(t testing.TB, v *Validator, w *wire.Reply, q *wire.Query, packet, buf []byte) (parked int) {
	t.Helper()
	var waited eventloop.Exchange
	for {
		w.Reset(buf)
		if !q.Parse(packet) {
			t.Fatal("the query is none for the lane")
		}
		q.Await(waited)
		switch out := v.ServeWire(context.Background(), w, q); {
		case out == wire.Done:
			return parked
		case out == wire.Park && parked < 3:
			parked++
			waited = q.Awaited()
			resumed := make(eventloop.Waiter)
			q.Wait(resumed)
			<-resumed
		default:
			t.Fatalf("%s after %d checks", out, parked)
		}
	}
}

// Clients, logs and counters see no difference between the lanes, whatever a reply is: known, new, bogus, cut, of no anchor.
func TestLanes(t *testing.T) {
	var queries []*dns.Msg
	for _, name := range []string{"www.example.", "bad.example.", "plain.test.", "root-key-sentinel-is-ta-12345.example.", "root-key-sentinel-not-ta-12345.example.",
		"nothing.example.", "refer.test.", "cut.test.", "Www.Example.", "bad.example."} {
		for i, change := range []func(*dns.Msg){
			func(*dns.Msg) {}, do, func(m *dns.Msg) { m.AuthenticatedData = true },
			func(m *dns.Msg) { m.RecursionDesired = false }, func(m *dns.Msg) { do(m); m.RecursionDesired = false }, func(m *dns.Msg) { do(m); m.CheckingDisabled = true },
		} {
			m := new(dns.Msg).SetQuestion(name, dns.TypeA)
			m.Id = uint16(i + 1)
			change(m)
			queries = append(queries, m)
		}
	}
	for _, options := range []string{"", "permissive\nlog_bogus", "nta bad.example 1h", "sentinel off\nbudget checks 1"} {
		_, s := lab(t, options)
		s.replies["refer.test.A"] = &dns.Msg{Ns: []dns.RR{test.NS("test. 300 IN NS ns.test."), test.NSEC("test. 300 IN NSEC u. NS")}, Extra: []dns.RR{test.A("ns.test. 300 IN A 192.0.2.1")}}
		s.replies["cut.test.A"] = &dns.Msg{MsgHdr: dns.MsgHdr{Truncated: true}, Answer: []dns.RR{test.A("cut.test. 300 IN A 192.0.2.1")}}
		asked := map[int]bool{}
		test.Lanes(t, func() test.Handler {
			asked[s.asked] = true
			return wired(above(t, s, options), s)
		}, queries...)
		if len(asked) != 2 || s.asked < len(queries) {
			t.Errorf("%q: the source was asked %d times", options, s.asked)
		}
	}
}

// Where an unsigned alias leads is asked for, in either lane, if the client desires recursion.
func TestUnsignedAlias(t *testing.T) {
	for _, desired := range []bool{true, false} {
		_, s := lab(t, "")
		s.replies["to.test.A"] = &dns.Msg{Answer: []dns.RR{test.CNAME("to.test. 300 IN CNAME plain.test.")}}
		m := new(dns.Msg).SetQuestion("to.test.", dns.TypeA)
		want := 1
		if m.RecursionDesired = desired; desired {
			want = 2
		}
		if got, _, err := ask(t, above(t, s, ""), "to.test.", func(q *dns.Msg) { q.RecursionDesired = desired }); err != nil || len(got.Answer) != want {
			t.Errorf("recursion desired: %t: %v, %v", desired, got, err)
		}
		s.asked = 0
		test.Lanes(t, func() test.Handler { return wired(above(t, s, ""), s) }, m)
		if s.asked != 2*want {
			t.Errorf("recursion desired: %t: asked %d times in two lanes", desired, s.asked)
		}
	}
}

// A referral's DS records are for who asks for DNSSEC records, as its proofs are (RFC 4035 §3.1.4.1).
func TestReferralsWithoutDNSSEC(t *testing.T) {
	v, s := lab(t, "")
	ds := test.DS("sub.test. 300 IN DS 1 13 2 0011223344556677889900112233445566778899001122334455667788990011")
	s.replies["www.sub.test.A"] = &dns.Msg{Ns: []dns.RR{test.NS("sub.test. 300 IN NS ns.example."), ds}}
	for records, change := range map[int]func(*dns.Msg){1: func(*dns.Msg) {}, 2: do} {
		m, _, err := ask(t, v, "www.sub.test.", func(m *dns.Msg) {
			change(m)
			m.RecursionDesired = false
		})
		if err != nil || len(m.Ns) != records {
			t.Errorf("want %d records: %v, %v", records, m, err)
		}
	}
}

// told is an exchange that has ended, by what a server has said.
type told struct {
	eventloop.Ending
	zone    string // whose server it was
	queries int    // that it took
}

func (e *told) EachTeller(f func(advice.Teller)) { f(advice.Teller{Zone: rrset.MustName(e.zone)}) }

func (e *told) Spent() (spent, most advice.Cost) {
	return advice.Cost{Queries: e.queries}, advice.Cost{Queries: 3, Octets: 100}
}

// pupil counts what it is taught.
type pupil struct{ lessons int }

func (p *pupil) Learn(any, string, bool, []advice.Secure) { p.lessons++ }

// The resolver below is taught what is new: what was computed, or what a server has just said.
func TestTeachingInTheLane(t *testing.T) {
	v, s := lab(t, "")
	p := new(pupil)
	wired(v, s).learner = p
	packet, err := new(dns.Msg).SetQuestion("www.example.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		fresh   bool
		lessons int
	}{{false, 1}, {false, 1}, {true, 2}} {
		var w wire.Reply
		var q wire.Query
		waits := eventloop.Exchange(nil)
		for out := wire.Park; out == wire.Park; {
			w.Reset(nil)
			q.Parse(packet)
			if q.Await(waits); c.fresh {
				q.Await(&told{zone: "example."})
			}
			if out = v.ServeWire(context.Background(), &w, &q); out == wire.Park {
				waits = q.Awaited()
				resumed := make(eventloop.Waiter)
				q.Wait(resumed)
				<-resumed
			}
		}
		if !w.Holds() || p.lessons != c.lessons {
			t.Errorf("query %d: %d lessons, want %d", i, p.lessons, c.lessons)
		}
	}
}

// vouching is a resolver that made its reply of what by has found to be secure.
type vouching struct {
	wireSource
	by func() any
}

func (s *vouching) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	out := s.wireSource.ServeWire(ctx, w, q)
	w.Vouch(s.by())
	return out
}

// What follows from what is trusted now is secure as it is. What another has found, or this one before it trusted
// others, is judged as any reply, and so is all while there are negative trust anchors.
func TestVouched(t *testing.T) {
	v, s := lab(t, "")
	s.replies["made.example.A"] = &dns.Msg{Answer: []dns.RR{test.A("made.example. 300 IN A 192.0.2.1")}} // no server signed it
	other, _ := lab(t, "")
	var by any
	v.Next = &vouching{wireSource{source: s, replies: map[string]*wire.Packed{}}, func() any { return by }}
	want := func(what string, rcode int, ad bool) {
		t.Helper()
		m := new(dns.Msg).SetQuestion("made.example.", dns.TypeA)
		m.AuthenticatedData = true
		packet, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var w wire.Reply
		var q wire.Query
		serveWire(t, v, &w, &q, packet, nil)
		if w.Rcode() != rcode || w.Flag(wire.FlagAD) != ad || ad && w.Count(wire.Answer) != 1 || q.DO() {
			t.Errorf("%s: rcode %d, AD %v, DO %v; want %d, %v", what, w.Rcode(), w.Flag(wire.FlagAD), q.DO(), rcode, ad)
		}
		v.failures.forget()
	}
	by = v.live.Load()
	want("made of what is secure", dns.RcodeSuccess, true)
	by = other.live.Load()
	want("another's", dns.RcodeServerFailure, false)
	by = nil
	want("nobody's", dns.RcodeServerFailure, false)
	by = v.live.Load()
	if err := v.negatives.set("\x05other\x00", time.Now().Add(time.Hour), false); err != nil {
		t.Fatal(err)
	}
	want("with a negative trust anchor", dns.RcodeServerFailure, false)
	if err := v.negatives.set("\x05other\x00", time.Time{}, false); err != nil {
		t.Fatal(err)
	}
	want("without it", dns.RcodeSuccess, true)
	v.trusts(&trust{anchors: v.anchors})
	want("from before others were trusted", dns.RcodeServerFailure, false)
}

// tellers answers as a server of a zone.
type tellers struct {
	*source
	zone string
}

func (h *tellers) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	advice.Of(ctx).Add(advice.Teller{Zone: rrset.MustName(h.zone)})
	return h.source.ServeDNS(ctx, w, r)
}

// Whose server has answered counts in both lanes: what was signed above its zone is not believed.
func TestServerOfAZoneBelow(t *testing.T) {
	for zone, want := range map[string]int{"example.": dns.RcodeSuccess, "sub.example.": dns.RcodeServerFailure} {
		query := new(dns.Msg).SetQuestion("www.sub.example.", dns.TypeA)
		v, s := lab(t, "")
		v.Next = &tellers{s, zone}
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		rcode, _ := v.ServeDNS(t.Context(), rec, query)
		if rec.Msg != nil {
			rcode = rec.Msg.Rcode
		}
		if rcode != want {
			t.Errorf("message lane, %s: rcode %d, want %d", zone, rcode, want)
		}
		for _, known := range []bool{false, true} { // the chain to the signer
			v, s := lab(t, "")
			wired(v, s)
			packet, err := query.Pack()
			if err != nil {
				t.Fatal(err)
			}
			var w wire.Reply
			var q wire.Query
			if known {
				serveWire(t, v, &w, &q, packet, nil)
			}
			waits := eventloop.Exchange(&told{zone: zone})
			for out := wire.Park; out == wire.Park; {
				w.Reset(nil)
				q.Parse(packet)
				q.Await(waits)
				if out = v.ServeWire(t.Context(), &w, &q); out == wire.Park {
					waits = q.Awaited()
					resumed := make(eventloop.Waiter)
					q.Wait(resumed)
					<-resumed
				}
			}
			if w.Rcode() != want {
				t.Errorf("wire lane, %s, known %v: rcode %d, want %d", zone, known, w.Rcode(), want)
			}
		}
	}
}

// A check is for the query that it was begun for: others, which differ in what goes into the reply, have their own.
func TestCheckIsForItsQuery(t *testing.T) {
	v, s := lab(t, "")
	wired(v, s)
	parse := func(name string, change func(*dns.Msg)) *wire.Query {
		m := new(dns.Msg).SetQuestion(name, dns.TypeA)
		change(m)
		packet, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		q := new(wire.Query)
		if !q.Parse(packet) {
			t.Fatal("the query is none for the lane")
		}
		return q
	}
	var w wire.Reply
	w.Reset(nil)
	q := parse("www.example.", do)
	if out := v.ServeWire(context.Background(), &w, q); out != wire.Park {
		t.Fatalf("%s", out)
	}
	c := q.Awaited().(*check)
	other, _ := lab(t, "")
	for what, o := range map[string]struct {
		of *Validator
		q  *wire.Query
		is bool
	}{
		"itself": {v, q, true}, "case": {v, parse("wWw.example.", do), false}, "RD": {v, parse("www.example.", func(m *dns.Msg) { m.RecursionDesired = false }), false},
		"type": {v, parse("www.example.", func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeMX }), false}, "validator": {other, q, false},
	} {
		if c.of(o.of, o.q) != o.is {
			t.Errorf("%s: it is for %v", what, !o.is)
		}
	}
}
