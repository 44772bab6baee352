package iterate

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// What did not hold of a name is asked of others; where aliases led from there is not asked for again, nor are servers spared
// that told of other names.
func TestDoubtedNames(t *testing.T) {
	w, s := small(t), &advice.Source{}
	w.serve("10.0.1.2", "net. 3600 IN SOA a. b. 1 2 3 4 5\nexample.net. 3600 IN NS ns.example.net.\nns.example.net. 3600 IN A 10.0.3.1")
	w.serve("10.0.3.1", "example.net. 60 IN SOA a. b. 1 2 3 4 5\nwww.example.net. 60 IN A 192.0.2.9")
	ask := func() (*Result, []asked) {
		w.asked = nil
		r := New(w.conf, Question{rrset.MustName("out.example.org."), 1}, false)
		r.Trace(s)
		queue := append([]Action(nil), r.Step(Event{Kind: Begun}, w.now)...)
		for queue[0].Kind != Finish {
			queue = append(queue[1:], r.Step(w.exchange(queue[0]), w.now)...)
		}
		return r.Result(), w.asked
	}
	const want = "NOERROR; out.example.org. CNAME www.example.net.; www.example.net. A 192.0.2.9"
	r, first := ask()
	alias := rrset.MustName("out.example.org.")
	if r.text() != want || s.Of(alias).Name != alias || s.Of(alias).Server != s.All()[0].Server || s.Of("").Server.Addr() != addr("10.0.3.1") {
		t.Fatalf("%s, told by %v", r.text(), s.All())
	}
	told := s.Of(alias).Server
	s.Doubt(alias)
	r, second := ask()
	if r.text() != want || len(second) != 1 || second[0].at == told.Addr() {
		t.Errorf("%s, asked %v after %v", r.text(), second, first)
	}
	s.Doubt(rrset.MustName("www.example.net."))
	if r, third := ask(); r.Rcode != rcodeServFail {
		t.Errorf("the only server of a name is doubted: %s, asked %v", r.text(), third)
	}
	s.Doubt(alias)
	if r, fourth := ask(); r.Rcode != rcodeServFail || len(fourth) != 0 {
		t.Errorf("both servers are doubted: %s, asked %v", r.text(), fourth)
	}
}

// An NSEC record is left out if its next name is not in the zone whose server told it.
func TestLeadsOut(t *testing.T) {
	for next, want := range map[string]bool{"a.example.org.": false, "example.org.": false, "A.EXAMPLE.org.": false, "example.net.": true, "org.": true, "xexample.org.": true} {
		s := rrset.New(rrset.MustName("x.example.org."), rrset.TypeNSEC, 60, rrset.MustName(next)+"\x00\x01\x40")
		if got := leadsOut(s, rrset.MustName("example.org.")); got != want {
			t.Errorf("%s: %v", next, got)
		}
	}
	if !leadsOut(rrset.New("\x01x\x00", rrset.TypeNSEC, 60, "\x05abc"), rrset.Root) {
		t.Error("a name that is cut short")
	}
	if leadsOut(rrset.New("\x01x\x00", 1, 60, "\x01\x02\x03\x04"), "\x01y\x00") {
		t.Error("an A record")
	}
}

// A server that a validator prefers is asked before others, unless what it told is doubted.
func TestPreferred(t *testing.T) {
	w := small(t)
	for i := range 20 {
		s, want := &advice.Source{}, netip.AddrPortFrom(addr([]string{"10.0.2.1", "10.0.2.2"}[i%2]), 53)
		ask := func() netip.Addr {
			w.asked = nil
			r := New(w.conf, Question{rrset.MustName("www.example.org."), 1}, true)
			r.Trace(s)
			queue := append([]Action(nil), r.Step(Event{Kind: Begun}, w.now)...)
			for queue[0].Kind != Finish {
				queue = append(queue[1:], r.Step(w.exchange(queue[0]), w.now)...)
			}
			return w.asked[len(w.asked)-1].at
		}
		s.Prefer(want)
		if got := ask(); got != want.Addr() {
			t.Fatalf("%s was asked, not %s", got, want)
		}
		s.Doubt("")
		if got := ask(); got == want.Addr() {
			t.Fatalf("%s was asked once more", got)
		}
	}
}

// A server that refused EDNS is asked with it once more where an answer without signatures is doubted, but not each time.
func TestDoubtedWithoutEDNS(t *testing.T) {
	w := newWorld(t)
	w.serve("10.0.0.1", rootZone)
	truth := w.servers[addr("10.0.0.1")]
	refuses := func(q *dns.Msg, tcp bool) *dns.Msg {
		if q.IsEdns0() != nil {
			return new(dns.Msg).SetRcode(q, dns.RcodeFormatError)
		}
		return truth(q, tcp)
	}
	w.servers[addr("10.0.0.1")] = refuses
	w.conf.Minimise = Off
	edns := func(s *advice.Source) (all string) {
		w.asked = nil
		r := New(w.conf, Question{rrset.MustName("a.root."), dns.TypeAAAA}, true)
		r.Trace(s)
		w.through(r)
		for _, a := range w.asked {
			if a.q == "a.root. AAAA" {
				all += fmt.Sprint(a.edns, " ")
			}
		}
		return all
	}
	doubts := func() *advice.Source {
		s := new(advice.Source)
		s.Doubt("")
		return s
	}
	edns(nil) // it becomes known
	for i, step := range []struct {
		s    *advice.Source
		want string
	}{
		{nil, "false "}, {doubts(), "true false "}, {doubts(), "false "}, {nil, "false "}, {doubts(), "true false "}, {doubts(), "true "}, {nil, "true "},
	} {
		if i == 4 || i == 5 {
			w.now += 10 * store.Second
		}
		if i == 5 {
			w.servers[addr("10.0.0.1")] = truth
		}
		if got := edns(step.s); got != step.want {
			t.Errorf("step %d: asked with EDNS %s, want %s", i, got, step.want)
		}
	}
}
