package iterate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"

	"github.com/miekg/dns"
)

// signs has the servers of org say that zones below are signed.
func signs(t *testing.T, w *world) {
	org := w.servers[addr("10.0.1.1")]
	w.servers[addr("10.0.1.1")] = func(q *dns.Msg, tcp bool) *dns.Msg {
		m := org(q, tcp)
		if len(m.Ns) > 0 && m.Ns[0].Header().Rrtype == dns.TypeNS {
			zone := m.Ns[0].Header().Name
			if zone == "glueless.org." {
				m.Extra = nil
			}
			m.Ns = append(m.Ns, rr(t, zone+" 300 IN DS 1 13 2 00"), rr(t, zone+" 300 IN RRSIG DS 13 2 300 20400101000000 20200101000000 1 org. AA=="))
		}
		return m
	}
}

// The keys of a signed zone are fetched when a client's question comes to it: once, not if they are kept, and not for the sake
// of addresses of servers.
func TestKeysAhead(t *testing.T) {
	w := small(t)
	w.serve("10.0.1.1", orgZone+"glueless.org. 3600 IN NS ns1.example.org.\n")
	w.serve("10.0.2.1", exampleZone, "glueless.org. 300 IN SOA ns1.example.org. x. 1 2 3 4 300\nwww.glueless.org. 300 IN A 192.0.2.9\n")
	w.servers[addr("10.0.2.2")] = w.servers[addr("10.0.2.1")]
	signs(t, w)
	said := ""
	w.conf.Ahead = func(q Question) { said += fmt.Sprint(rrset.Text(q.Name), dns.TypeToString[q.Type], " ") }
	for _, tc := range []struct{ name, typ, want string }{
		{"www.glueless.org.", "A", "glueless.org.DNSKEY "}, // and on the way to its server example.org
		{"www.example.org.", "A", ""},                      // the delegation is kept
	} {
		if said = ""; w.resolve(tc.name, tc.typ).Rcode != 0 || said != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.name, tc.typ, said, tc.want)
		}
	}
	again := func() {
		said = ""
		w.conf.Stores.Delegations.Forget("\x07example\x03org\x00", true)
		w.conf.Stores.RRsets.Forget("\x03www\x07example\x03org\x00", true)
		w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	}
	if again(); said != "example.org.DNSKEY " {
		t.Errorf("asked for itself: %q", said)
	}
	for _, at := range []string{"10.0.2.1", "10.0.2.2"} {
		w.serve(at, exampleZone+"example.org. 3600 IN DNSKEY 257 3 13 AAAA\n")
	}
	if w.resolve("example.org.", "DNSKEY"); len(said) > len("example.org.DNSKEY ") {
		t.Errorf("for the keys themselves: %q", said)
	}
	if again(); said != "" {
		t.Errorf("they are kept: %q", said)
	}
}

// What is fetched ahead costs two queries at most, fetches nothing ahead itself, and its failure is nobody's.
func TestAheadIsBounded(t *testing.T) {
	w := small(t)
	signs(t, w)
	w.conf.Ahead = func(q Question) { t.Errorf("%q ahead of what is ahead", q.Name) }
	w.conf.Minimise = Off
	r := New(w.conf, Question{"\x01x\x07example\x03org\x00", dns.TypeA}, true)
	r.Ahead()
	for _, at := range []string{"10.0.2.1", "10.0.2.2"} {
		w.servers[addr(at)] = nil
	}
	got := w.through(r)
	for _, at := range []string{"10.0.2.1", "10.0.2.2"} {
		w.serve(at, exampleZone)
	}
	if got.Rcode != dns.RcodeServerFailure || got.Queries != aheadQueries || !strings.Contains(got.Text, "too many queries") {
		t.Errorf("%d queries: rcode %d, %s", got.Queries, got.Rcode, got.Text)
	}
	w.conf.Ahead = nil
	w.want("x.example.org.", "A", "NXDOMAIN")
}

// A chain of signed zones has the keys of four of them fetched, however long it is.
func TestAheadZones(t *testing.T) {
	w := small(t)
	w.conf.Minimise = Off
	var zones []string
	asked := 0
	for i := range 10 {
		zones = append(zones, strings.Repeat("a.", i+1)+"org.")
	}
	w.servers[addr("10.0.1.1")] = func(q *dns.Msg, _ bool) *dns.Msg {
		m := new(dns.Msg).SetReply(q)
		asked++
		for i, z := range zones {
			if asked <= i+1 && dns.IsSubDomain(z, strings.ToLower(q.Question[0].Name)) {
				m.Ns = []dns.RR{rr(t, z+" 300 IN NS a.nic.org."), rr(t, z+" 300 IN DS 1 13 2 00"), rr(t, z+" 300 IN RRSIG DS 13 2 300 20400101000000 20200101000000 1 org. AA==")}
				m.Extra = []dns.RR{rr(t, "a.nic.org. 300 IN A 10.0.1.1")}
				return m
			}
		}
		m.Authoritative, m.Answer = true, []dns.RR{rr(t, q.Question[0].Name+" 300 IN A 192.0.2.1")}
		return m
	}
	n := 0
	w.conf.Ahead = func(Question) { n++ }
	w.want(zones[9], "A", "NOERROR; "+zones[9]+" A 192.0.2.1")
	if n != aheadZones || asked <= len(zones) {
		t.Errorf("of %d zones, in %d queries", n, asked)
	}
}
