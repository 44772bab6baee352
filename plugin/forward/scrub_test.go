package forward

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

func TestScrubbed(t *testing.T) {
	rr := func(text string) []dns.RR {
		var all []dns.RR
		for line := range strings.Lines(text) {
			r, err := dns.NewRR(line)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		return all
	}
	for name, c := range map[string]struct {
		answer, authority string
		keep              int // records of the answer
		rcode             int
	}{
		"one":          {"a.org. 1 IN A 192.0.2.1", "", 1, 0},
		"a stray":      {"a.org. 1 IN A 192.0.2.1\nb.org. 1 IN A 192.0.2.2", "", 1, 0},
		"an alias":     {"a.org. 1 IN CNAME B.net.\nb.net. 1 IN A 192.0.2.2\nc.net. 1 IN A 192.0.2.3", "", 2, 0},
		"no order":     {"b.net. 1 IN A 192.0.2.2\na.org. 1 IN CNAME b.net.", "", 2, 0},
		"a circle":     {"a.org. 1 IN CNAME b.net.\nb.net. 1 IN CNAME a.org.", "", 2, 0},
		"DNAME":        {"org. 1 IN DNAME net.\na.org. 1 IN CNAME a.net.\na.net. 1 IN A 192.0.2.2", "", 3, 0},
		"no data":      {"", "org. 1 IN SOA a. b. 1 2 3 4 5\norg. 1 IN NS a.", 0, 0},
		"a referral":   {"", "org. 1 IN NS a.", 0, dns.RcodeServerFailure},
		"nothing":      {"", "", 0, 0},
		"a lone stray": {"b.org. 1 IN A 192.0.2.2", "", 0, 0},
	} {
		m := new(dns.Msg).SetReply(new(dns.Msg).SetQuestion("A.org.", dns.TypeA))
		m.Answer, m.Ns = rr(c.answer), rr(c.authority)
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var got dns.Msg
		if err := got.Unpack(New().scrub(b)); err != nil || len(got.Answer) != c.keep || got.Rcode != c.rcode {
			t.Errorf("%s: %v\n%v", name, err, &got)
		}
	}
}

// guide is a referrer that has the names of which it was told.
type guide struct{ told []string }

func (g *guide) Told(m *rrset.Message) { g.told = append(g.told, rrset.Text(m.Name)) }

func (g *guide) Refer(w *wire.Reply, q *wire.Query) bool {
	if string(q.Lower()) != rrset.MustName("known.org.") {
		return false
	}
	w.Begin(q)
	w.Target(wire.Authority, wire.MustName("org."), wire.TypeNS, 60, wire.MustName("ns.org."))
	return true
}

// A referrer is told of replies to who desires recursion, and asked first for who does not; upstreams have the rest.
func TestReferBy(t *testing.T) {
	f := configured(t, "forward . "+upstream(t, says("192.0.2.1")))
	g := new(guide)
	f.ScrubAnswers()
	f.ReferBy(g)
	for _, lane := range []string{"message", "wire"} {
		for _, c := range []struct {
			name          string
			rd            bool
			answers, refs int
			told          string
		}{
			{"known.org.", false, 0, 1, ""}, {"known.org.", true, 1, 0, "known.org."}, {"other.org.", false, 1, 0, ""}, {"other.org.", true, 1, 0, "other.org."},
		} {
			r := new(dns.Msg).SetQuestion(c.name, dns.TypeA)
			r.RecursionDesired = c.rd
			g.told = nil
			var m *dns.Msg
			var err error
			if lane == "wire" {
				m, _, _, err = serveWire(t, f, wire.Peer{}, r)
			} else {
				m, _, err = serve(f, &test.ResponseWriter{}, r)
			}
			if err != nil || m == nil || len(m.Answer) != c.answers || len(m.Ns) != c.refs || m.Id != r.Id || strings.Join(g.told, " ") != c.told {
				t.Errorf("%s %+v: told %q, %v\n%v", lane, c, g.told, err, m)
			}
		}
	}
}

// A referrer is told of nothing that stands in failures, and in referrals of those that do not resolve for us.
func TestToldByAnswersOnly(t *testing.T) {
	for _, c := range []struct {
		rcode  int
		answer bool
		told   int
	}{
		{dns.RcodeSuccess, true, 1}, {dns.RcodeNameError, false, 1}, {dns.RcodeSuccess, false, 0}, {dns.RcodeRefused, false, 0}, {dns.RcodeServerFailure, true, 0},
	} {
		m := new(dns.Msg).SetRcode(new(dns.Msg).SetQuestion("a.org.", dns.TypeA), c.rcode)
		ns, _ := dns.NewRR("org. 60 IN NS ns.org.")
		m.Ns = []dns.RR{ns}
		if a, _ := dns.NewRR("a.org. 60 IN A 192.0.2.1"); c.answer {
			m.Answer = []dns.RR{a}
		}
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		f, g := New(), new(guide)
		f.ReferBy(g)
		if f.scrub(b); len(g.told) != c.told {
			t.Errorf("%+v: told %q", c, g.told)
		}
	}
}
