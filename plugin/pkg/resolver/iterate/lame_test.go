package iterate

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

func TestLameServers(t *testing.T) {
	for name, lame := range map[string]server{
		"refused":  func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeRefused) },
		"servfail": func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeServerFailure) },
		"upward": func(q *dns.Msg, _ bool) *dns.Msg {
			m := new(dns.Msg).SetReply(q)
			m.Ns = append(m.Ns, rr(t, ". 3600 IN NS evil.root."))
			m.Extra = append(m.Extra, rr(t, "evil.root. 3600 IN A 203.0.113.66"))
			return m
		},
		"upward, as an authority": func(q *dns.Msg, _ bool) *dns.Msg {
			m := new(dns.Msg).SetReply(q)
			m.Authoritative = true
			m.Ns = append(m.Ns, rr(t, ". 3600 IN NS evil.root."))
			return m
		},
		"sideways": func(q *dns.Msg, _ bool) *dns.Msg {
			m := new(dns.Msg).SetReply(q)
			m.Ns = append(m.Ns, rr(t, "example.org. 3600 IN NS ns1.example.org."))
			return m
		},
		"resolver": func(q *dns.Msg, _ bool) *dns.Msg {
			m := new(dns.Msg).SetReply(q)
			m.RecursionAvailable = true
			m.Answer = append(m.Answer, rr(t, q.Question[0].Name+" 60 IN A 203.0.113.66"))
			return m
		},
		"silent": nil,
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // the order of servers is random
				w := small(t)
				w.servers[addr("10.0.2.1")] = lame
				w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
				if e := w.conf.Stores.Delegations.Get(rrset.Root, w.now); len(e.Hosts) != 1 {
					t.Error("the root's servers were taken from elsewhere")
				}
				w.asked = nil
				w.want("a.ent.example.org.", "A", "NOERROR; a.ent.example.org. A 192.0.2.2")
				most := 3
				if name == "silent" { // now and then one that is slow is asked, too, for each of two questions
					most = 4
				}
				if n := len(w.asked); n > most {
					t.Errorf("%d queries, though it is known who is lame: %v", n, w.asked)
				}
			}
		})
	}
}

// A server may be lame for some names or types only, such as those that it refuses to everybody: where nobody else is
// left it is asked for others all the same.
func TestLameForSome(t *testing.T) {
	for name, odd := range map[string]func(m *dns.Msg){
		"refused": func(m *dns.Msg) { m.Rcode = dns.RcodeRefused },
		"upward":  func(m *dns.Msg) { m.Ns = append(m.Ns, rr(t, ". 3600 IN NS evil.root.")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := small(t)
			for _, at := range []string{"10.0.2.1", "10.0.2.2"} {
				whole := w.servers[addr(at)]
				w.servers[addr(at)] = func(q *dns.Msg, tcp bool) *dns.Msg {
					if q.Question[0].Qtype != dns.TypeANY {
						return whole(q, tcp)
					}
					m := new(dns.Msg).SetReply(q)
					odd(m)
					return m
				}
			}
			w.want("www.example.org.", "ANY", "SERVFAIL; EDE 22")
			w.asked = nil
			w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
			if n := len(w.asked); n != 1 {
				t.Errorf("%d queries: %v", n, w.asked)
			}
			w.want("www.example.org.", "ANY", "NOERROR; www.example.org. A 192.0.2.1")
		})
	}
}

// Who has refused one question is asked others before a server that is silent is asked once more.
func TestLameBeforeSilent(t *testing.T) {
	w := small(t)
	w.conf.Minimise = Off
	w.servers[addr("10.0.2.1")] = nil
	whole := w.servers[addr("10.0.2.2")]
	w.servers[addr("10.0.2.2")] = func(q *dns.Msg, tcp bool) *dns.Msg {
		if q.Question[0].Qtype == dns.TypeANY {
			return new(dns.Msg).SetRcode(q, dns.RcodeRefused)
		}
		return whole(q, tcp)
	}
	w.want("www.example.org.", "ANY", "SERVFAIL; EDE 22")
	w.asked = nil
	for i := range 20 {
		w.want(fmt.Sprintf("x%d.example.org.", i), "A", "NXDOMAIN")
	}
	if n := len(w.asked); n < 20 || n > 50 { // 61 if it is asked last
		t.Errorf("%d queries", n)
	}
}

// When all servers of a zone are lame a question is worth four queries to them, however many there are.
func TestLameProbes(t *testing.T) {
	w := small(t)
	org := orgZone
	for i := range 10 {
		org += fmt.Sprintf("example.org. 3600 IN NS n%d.example.org.\nn%d.example.org. 3600 IN A 10.0.3.%d\n", i, i, i)
		w.servers[addr(fmt.Sprintf("10.0.3.%d", i))] = func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeRefused) }
	}
	w.serve("10.0.1.1", org)
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = w.servers[addr("10.0.3.0")], w.servers[addr("10.0.3.0")]
	w.want("a.example.org.", "A", "SERVFAIL; EDE 22")
	for _, name := range []string{"b.example.org.", "c.example.org."} {
		w.asked = nil
		if w.want(name, "A", "SERVFAIL; EDE 22"); len(w.asked) != 4 {
			t.Errorf("%s: %d queries", name, len(w.asked))
		}
	}
}

// When all servers of a zone count as dead a question is worth two queries to them, however many there are, and however
// much of the name was asked for before (spec §2.5).
func TestProbes(t *testing.T) {
	w := small(t)
	org := strings.Replace(orgZone, "example.org. 3600 IN NS ns1.example.org.", "example.org. 3600 IN NS ns3.example.org.\nexample.org. 3600 IN NS ns1.example.org.", 1)
	w.serve("10.0.1.1", org+"ns3.example.org. 3600 IN A 10.0.2.3\n")
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = nil, nil
	for i := range 6 {
		w.asked = nil
		w.resolve(fmt.Sprintf("www.a%d.b%d.example.org.", i, i), "A")
		dead := 0
		w.conf.Stores.Servers.Each(func(s *store.Server) {
			if s.IsDead() {
				dead++
			}
		})
		asked := 0
		for _, a := range w.asked { // else it is the parent that was asked
			if netip.MustParsePrefix("10.0.2.0/24").Contains(a.at) {
				asked++
			}
		}
		if i > 3 && (dead < 3 || asked == 0 || asked > 2) {
			t.Errorf("name %d: %d queries, %d servers are dead: %v", i, asked, dead, w.asked)
		}
		w.now += 2 * store.Second
	}
}

func TestAllSilent(t *testing.T) {
	w := small(t)
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = nil, nil
	if r := w.want("www.example.org.", "A", "SERVFAIL; EDE 22"); r.Repeated {
		t.Error("the first failure is said to be an older one")
	}
	w.asked = nil
	if r := w.want("www.example.org.", "A", "SERVFAIL; EDE 22"); len(w.asked) != 0 || !r.Repeated {
		t.Errorf("a failure is kept, and yet there are queries: %v, told so: %v", w.asked, r.Repeated)
	}
	w.now += 6 * store.Second
	w.serve("10.0.2.1", exampleZone)
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
}

// A server that does not know EDNS is asked without, and that is remembered; one that has shown it once is not (R13).
func TestWithoutEDNS(t *testing.T) {
	w := small(t)
	old := authority{[]*zoneText{parseZone(t, exampleZone)}}
	plain := func(q *dns.Msg, tcp bool) *dns.Msg {
		if q.IsEdns0() != nil {
			return new(dns.Msg).SetRcode(q, dns.RcodeFormatError)
		}
		return old.answer(q, tcp)
	}
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = plain, nil
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	w.asked = nil
	w.want("alias.example.org.", "A", "NOERROR; alias.example.org. CNAME www.example.org.; www.example.org. A 192.0.2.1")
	if len(w.asked) == 0 || w.asked[len(w.asked)-1].edns {
		t.Errorf("it is asked with EDNS again: %v", w.asked)
	}
	w = small(t)
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = plain, plain
	w.want("a.ent.example.org.", "A", "NOERROR; a.ent.example.org. A 192.0.2.2") // the one that was not met yet
	for _, a := range w.asked {
		if s := w.conf.Stores.Servers.Get(netip.AddrPortFrom(a.at, 53), nil); !a.edns && s.EDNS(w.now) {
			t.Errorf("%v has shown EDNS and is asked without", a)
		}
	}
}

func TestTruncated(t *testing.T) {
	w := small(t)
	cut := func(tcp func(*dns.Msg, bool) *dns.Msg) server {
		return func(q *dns.Msg, over bool) *dns.Msg {
			if over {
				return tcp(q, over)
			}
			m := new(dns.Msg).SetReply(q)
			m.Truncated = true
			return m
		}
	}
	full := authority{[]*zoneText{parseZone(t, exampleZone)}}.answer
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = cut(full), cut(full)
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	w = small(t)
	none := func(*dns.Msg, bool) *dns.Msg { return nil }
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = cut(none), cut(full)
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
}

// Replies that are not believed make the question go over TCP, and the server one that does not repeat letters.
func TestDoubted(t *testing.T) {
	w := small(t)
	w.conf.MixCase = true
	w.wild = func(a Action) *Event {
		if a.Zone == rrset.MustName("example.org.") && a.MixCase {
			return &Event{Kind: TimedOut, Doubted: 1, Folded: true}
		}
		return nil
	}
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	last := func() asked { return w.asked[len(w.asked)-1] }
	if !last().tcp {
		t.Errorf("not over TCP: %v", last())
	}
	proves := true
	w.conf.Proves = func(any) bool { return proves }
	for i := range 40 { // until both servers are known not to repeat letters
		w.resolve(fmt.Sprintf("n%d.example.org.", i), "A")
	}
	if last().tcp {
		t.Errorf("over TCP though cookies tell who it is: %v", last())
	}
	proves = false
	w.resolve("txt.example.org.", "A")
	if !last().tcp {
		t.Errorf("neither letters nor a cookie tell who it is, but not over TCP: %v", last())
	}
	// Many such replies are a forger's: the server still has to repeat letters.
	w = small(t)
	w.conf.MixCase = true
	w.wild = func(a Action) *Event {
		if a.Zone == rrset.MustName("example.org.") && !a.TCP {
			return &Event{Kind: TimedOut, Doubted: 2, Folded: true}
		}
		return nil
	}
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	w.conf.Stores.Servers.Each(func(s *store.Server) {
		if !s.MixCase(w.now) {
			t.Errorf("%s counts as one that does not repeat letters", s.Addr)
		}
	})
	w.wild = func(a Action) *Event {
		if !a.TCP && a.Zone == rrset.MustName("example.org.") {
			return &Event{Kind: Failed, Forged: true}
		}
		return nil
	}
	w.want("a.ent.example.org.", "A", "NOERROR; a.ent.example.org. A 192.0.2.2")
}

// A server whose replies are doubted, and that is not to be had over TCP, is asked with what letters and cookies it takes, which
// may be none: it would have no zone else. That is known then.
func TestDoubtedWithoutTCP(t *testing.T) {
	for what, tc := range map[string]struct {
		doubted func(a Action) *Event
		asked   Action // how it is asked in the end
	}{
		"letters": {func(a Action) *Event {
			if a.MixCase {
				return &Event{Kind: TimedOut, Doubted: 1, Folded: true}
			}
			return nil
		}, Action{Cookie: true}},
		"cookie": {func(a Action) *Event {
			if a.Cookie {
				return &Event{Kind: TimedOut, Doubted: 1}
			}
			return nil
		}, Action{MixCase: true}},
	} {
		for how, noTCP := range map[string]Event{"refused": {Kind: Failed, Text: "connection refused"}, "silent": {Kind: TimedOut}} {
			w := small(t)
			w.conf.MixCase, w.conf.Cookies, w.conf.Minimise = true, true, Off
			w.conf.Proves = func(any) bool { return false }
			w.servers[addr("10.0.2.2")] = func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeNotAuth) }
			var last Action
			tcp := 0
			w.wild = func(a Action) *Event {
				if last = a; a.Server.Addr.Addr() != addr("10.0.2.1") {
					return nil
				}
				if a.TCP {
					tcp++
					ev := noTCP
					ev.From, ev.TCP = a.Server, true
					return &ev
				}
				return tc.doubted(a)
			}
			for i := range 10 {
				w.want(fmt.Sprintf("x%d.example.org.", i), "A", "NXDOMAIN")
				if last.TCP || last.MixCase != tc.asked.MixCase || last.Cookie != tc.asked.Cookie {
					t.Errorf("%s, TCP %s: asked with letters %v, cookie %v, TCP %v", what, how, last.MixCase, last.Cookie, last.TCP)
				}
			}
			if tcp != 1 {
				t.Errorf("%s, TCP %s: tried %d times", what, how, tcp)
			}
		}
	}
}

// Where somebody on the way answers in place of all servers, from a cache, all are resolvers. Once that is known each question is
// asked of one.
func TestProxied(t *testing.T) {
	w := small(t)
	for at, s := range w.servers {
		w.servers[at] = func(q *dns.Msg, tcp bool) *dns.Msg {
			m := s(q, tcp)
			m.Authoritative, m.RecursionAvailable = false, true
			return m
		}
	}
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	for range 20 {
		w.asked = nil
		w.want("alias.example.org.", "AAAA", "NOERROR; alias.example.org. CNAME www.example.org.")
		w.want("no.example.org.", "A", "NXDOMAIN")
		if n := len(w.asked); n > 3 {
			t.Errorf("%d queries: %v", n, w.asked)
		}
		w.conf.Stores.RRsets.Forget(rrset.MustName("example.org."), true)
	}
}

// resolver answers q as one that is no server of the zone, and has an address of any name.
func resolver(t testing.TB, q *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetReply(q)
	m.RecursionAvailable = true
	m.Answer = append(m.Answer, rr(t, q.Question[0].Name+" 60 IN A 203.0.113.66"))
	return m
}

// A resolver among a zone's servers is not believed because the others' addresses are not known just now.
func TestResolverAndUnknownAddress(t *testing.T) {
	for range 20 {
		w := newWorld(t)
		elsewhere := func(zone string) string { return strings.ReplaceAll(zone, "ns2.example.org.", "ns2.example.net.") }
		w.serve("10.0.0.1", rootZone)
		w.serve("10.0.1.1", strings.ReplaceAll(elsewhere(orgZone), "ns2.example.net. 3600 IN A 10.0.2.2\n", ""))
		w.serve("10.0.1.2", "net. 3600 IN SOA a.nic.net. x. 1 2 3 4 300\nnet. 3600 IN NS a.nic.net.\nns2.example.net. 60 IN A 10.0.2.2\n")
		w.serve("10.0.2.2", elsewhere(exampleZone))
		w.servers[addr("10.0.2.1")] = func(q *dns.Msg, _ bool) *dns.Msg { return resolver(t, q) }
		for i := range 4 {
			w.want(fmt.Sprintf("x%d.example.org.", i), "A", "NXDOMAIN")
			w.now += 61 * store.Second
		}
	}
}

// A server that refused, or answered as a resolver, and is one of the zone's again, is asked and believed before one that
// still answers as a resolver.
func TestResolverBesideMended(t *testing.T) {
	for name, bad := range map[string]func(q *dns.Msg) *dns.Msg{
		"refused":  func(q *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeRefused) },
		"resolver": func(q *dns.Msg) *dns.Msg { return resolver(t, q) },
	} {
		w := small(t)
		w.conf.Minimise = Off
		truth := w.servers[addr("10.0.2.1")]
		w.servers[addr("10.0.2.1")] = func(q *dns.Msg, _ bool) *dns.Msg { return bad(q) }
		w.servers[addr("10.0.2.2")] = func(q *dns.Msg, _ bool) *dns.Msg { return resolver(t, q) }
		w.want("a.example.org.", "A", "NOERROR; a.example.org. A 203.0.113.66")
		w.servers[addr("10.0.2.1")] = truth
		wrong := 0
		for i := range 100 {
			if w.resolve(fmt.Sprintf("x%d.example.org.", i), "A").text() != "NXDOMAIN" {
				wrong++
			}
		}
		if most := map[string]int{"resolver": 25}[name]; wrong > most { // until it is asked, which is a matter of chance
			t.Errorf("%s: %d answers of 100 are the resolver's", name, wrong)
		}
	}
}
