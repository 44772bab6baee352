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

func TestFromTheRoot(t *testing.T) {
	w := small(t)
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	var all []string
	for _, a := range w.asked {
		all = append(all, a.q)
	}
	if got, want := strings.Join(all, ", "), ". NS, org. A, example.org. A, www.example.org. A"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	w.asked = nil
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	w.want("alias.example.org.", "A", "NOERROR; alias.example.org. CNAME www.example.org.; www.example.org. A 192.0.2.1")
	w.want("www.example.org.", "AAAA", "NOERROR")
	w.want("no.example.org.", "A", "NXDOMAIN")
	w.want("a.ent.example.org.", "A", "NOERROR; a.ent.example.org. A 192.0.2.2")
	if n := len(w.asked); n != 5 { // ent.example.org. A, too
		t.Errorf("%d queries, want 5: %v", n, w.asked)
	}
}

func TestAliases(t *testing.T) {
	w := small(t)
	w.want("loop.example.org.", "A", "SERVFAIL; EDE 0")
	w.want("loop.example.org.", "CNAME", "NOERROR; loop.example.org. CNAME pool.example.org.")
	chain := exampleZone
	for i := range 14 {
		chain += fmt.Sprintf("c%d.example.org. 60 IN CNAME c%d.example.org.\n", i, i+1)
	}
	chain += "c14.example.org. 60 IN A 192.0.2.14\n"
	w.serve("10.0.2.1", chain)
	w.serve("10.0.2.2", chain)
	if r := w.resolve("c3.example.org.", "A"); r.Rcode != 0 || len(r.Answer) != 12 {
		t.Errorf("11 aliases: %s", r.text())
	}
	w.want("c2.example.org.", "A", "SERVFAIL; EDE 0")
}

// The target of an alias lies in another zone; the packet holds a record for it that is not that zone's to give (R4).
func TestAliasLeavesTheZone(t *testing.T) {
	w := small(t)
	w.serve("10.0.1.2", "net. 3600 IN SOA a. b. 1 2 3 4 5\nexample.net. 3600 IN NS ns.example.net.\nns.example.net. 3600 IN A 10.0.3.1")
	w.serve("10.0.3.1", "example.net. 60 IN SOA a. b. 1 2 3 4 5\nwww.example.net. 60 IN A 192.0.2.9")
	w.servers[addr("10.0.2.1")] = func(q *dns.Msg, tcp bool) *dns.Msg {
		m := authority{[]*zoneText{parseZone(t, exampleZone)}}.answer(q, tcp)
		if q.Question[0].Name == "out.example.org." {
			m.Answer = append(m.Answer, rr(t, "www.example.net. 3600 IN A 203.0.113.66"))
		}
		return m
	}
	w.servers[addr("10.0.2.2")] = w.servers[addr("10.0.2.1")]
	w.want("out.example.org.", "A", "NOERROR; out.example.org. CNAME www.example.net.; www.example.net. A 192.0.2.9")
	w.want("www.example.net.", "A", "NOERROR; www.example.net. A 192.0.2.9")
}

func TestDNAME(t *testing.T) {
	w := small(t)
	w.servers[addr("10.0.2.1")] = func(q *dns.Msg, tcp bool) *dns.Msg {
		m := new(dns.Msg).SetReply(q)
		m.Authoritative = true
		switch name := q.Question[0].Name; {
		case name == "d.example.org.":
			m.Ns = append(m.Ns, rr(t, "example.org. 60 IN SOA a. b. 1 2 3 4 5"))
		case dns.IsSubDomain("d.example.org.", name): // and a CNAME that the DNAME does not make
			m.Answer = append(m.Answer, rr(t, "d.example.org. 60 IN DNAME e.example.org."), rr(t, name+" 60 IN CNAME evil.example.org."))
		case name == "x.d.e.example.org.":
			m.Answer = append(m.Answer, rr(t, name+" 60 IN CNAME x.d.example.org."))
		case name == "x.e.example.org.":
			m.Answer = append(m.Answer, rr(t, name+" 60 IN A 192.0.2.7"))
		default:
			m.Ns = append(m.Ns, rr(t, "example.org. 60 IN SOA a. b. 1 2 3 4 5"))
		}
		return m
	}
	w.servers[addr("10.0.2.2")] = w.servers[addr("10.0.2.1")]
	want := "NOERROR; d.example.org. DNAME e.example.org.; x.d.example.org. CNAME x.e.example.org.; x.e.example.org. A 192.0.2.7"
	w.want("x.d.example.org.", "A", want)
	w.asked = nil
	w.want("x.d.example.org.", "A", want)
	if len(w.asked) != 0 {
		t.Errorf("the DNAME was kept, and is asked for again: %v", w.asked)
	}
	// A DNAME that leads on twice is there once, whether a server tells of it or it is kept.
	for range 2 {
		w.want("x.d.d.example.org.", "A", "NOERROR; d.example.org. DNAME e.example.org.; x.d.d.example.org. CNAME x.d.e.example.org.; x.d.e.example.org. CNAME x.d.example.org.; x.d.example.org. CNAME x.e.example.org.; x.e.example.org. A 192.0.2.7")
	}
	long := strings.Repeat("a23456789012345678901234567890123456789012345678901234567890.", 3)
	w.servers[addr("10.0.2.1")] = func(q *dns.Msg, tcp bool) *dns.Msg {
		m := new(dns.Msg).SetReply(q)
		m.Answer = append(m.Answer, rr(t, "l.example.org. 60 IN DNAME "+long+"example.org."))
		return m
	}
	w.servers[addr("10.0.2.2")] = w.servers[addr("10.0.2.1")]
	if r := w.resolve(long+"l.example.org.", "A"); r.Rcode != dns.RcodeYXDomain {
		t.Errorf("a name that becomes too long: %s", r.text())
	}
}

// A DNAME on the way to a name leads on though it is not kept, as its TTL is 0; who asks for aliases themselves, or for all
// types, gets it with the CNAME that it makes (RFC 6672 §3.1).
func TestNamesBelowDNAME(t *testing.T) {
	for _, ttl := range []string{"0", "60"} {
		w := small(t)
		for _, at := range []string{"10.0.2.1", "10.0.2.2"} {
			w.servers[addr(at)] = func(q *dns.Msg, tcp bool) *dns.Msg {
				m := new(dns.Msg).SetReply(q)
				m.Authoritative = true
				switch name := q.Question[0].Name; {
				case strings.HasSuffix(name, ".d.example.org."):
					to := strings.TrimSuffix(name, "d.example.org.") + "e.example.org."
					m.Answer = append(m.Answer, rr(t, "d.example.org. "+ttl+" IN DNAME e.example.org."), rr(t, name+" "+ttl+" IN CNAME "+to))
				case name == "a.b.e.example.org.":
					m.Answer = append(m.Answer, rr(t, name+" 60 IN A 192.0.2.7"))
				default:
					m.Ns = append(m.Ns, rr(t, "example.org. 60 IN SOA a. b. 1 2 3 4 5"))
				}
				return m
			}
		}
		made := "NOERROR; d.example.org. DNAME e.example.org.; a.b.d.example.org. CNAME a.b.e.example.org."
		for typ, want := range map[string]string{"A": made + "; a.b.e.example.org. A 192.0.2.7", "CNAME": made, "ANY": made, "DNAME": made} {
			for range 2 {
				w.asked = nil
				if w.want("a.b.d.example.org.", typ, want); len(w.asked) > 10 {
					t.Errorf("TTL %s, %s: %d queries", ttl, typ, len(w.asked))
				}
			}
		}
		if r := w.run("a.b.d.example.org.", "A", true); r.Queries > 10 || len(r.Answer) != 3 {
			t.Errorf("TTL %s, fetched again: %s after %d queries", ttl, r.text(), r.Queries)
		}
	}
}

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
		if asked := len(w.asked); i > 3 && (dead < 3 || asked > 2) {
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

// Aliases in a circle, or too many, are kept, and so is the failure: as long as it is, the next one is told that it is an
// older one.
func TestKeptCircleOfAliases(t *testing.T) {
	w := small(t)
	for i, repeated := range []bool{false, true, true, false} {
		if i == 3 {
			w.now += 6 * store.Second
		}
		w.asked = nil
		r := w.want("loop.example.org.", "A", "SERVFAIL; EDE 0")
		if r.Repeated != repeated || i > 0 && len(w.asked) > 0 {
			t.Errorf("query %d: told that it is an older failure: %v, want %v; %d queries", i, r.Repeated, repeated, len(w.asked))
		}
	}
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
			return &Event{Kind: TimedOut, Doubted: 1}
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
			return &Event{Kind: TimedOut, Doubted: 2}
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

func TestMinimisation(t *testing.T) {
	broken := func(q *dns.Msg, tcp bool) *dns.Msg { // says that empty non-terminals do not exist
		m := authority{[]*zoneText{parseZone(t, exampleZone)}}.answer(q, tcp)
		if q.Question[0].Name == "ent.example.org." {
			m.Rcode = dns.RcodeNameError
		}
		return m
	}
	for mode, want := range map[Minimise]string{
		Relaxed: "NOERROR; a.ent.example.org. A 192.0.2.2", Strict: "NXDOMAIN", Off: "NOERROR; a.ent.example.org. A 192.0.2.2",
	} {
		w := small(t)
		w.conf.Minimise = mode
		w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = broken, broken
		if r := w.want("a.ent.example.org.", "A", want); (r.Wholes > 0) != (mode == Relaxed) {
			t.Errorf("mode %d: %d times the full name in place of less", mode, r.Wholes)
		}
		if mode == Off && w.queries("org.") != 0 {
			t.Error("minimised, though that is off")
		}
	}
	w := small(t)
	name := strings.Repeat("a.", 27) + "www.example.org." // 30 labels
	w.want(name, "A", "NXDOMAIN")
	w = small(t)
	deep := exampleZone + name + " 60 IN A 192.0.2.3\n_x._tcp.example.org. 60 IN SRV 0 0 1 www.example.org.\n"
	w.serve("10.0.2.1", deep)
	w.serve("10.0.2.2", deep)
	w.want(name, "A", "NOERROR; "+name+" A 192.0.2.3")
	steps := 0
	for _, a := range w.asked {
		if a.q != ". NS" && a.q != name+" A" {
			steps++
		}
	}
	if w.asked = nil; steps > maxMinimise || steps < oneLabel+2 {
		t.Errorf("%d minimised steps for 30 labels, want %d at most", steps, maxMinimise)
	}
	w.want("_x._tcp.example.org.", "SRV", "NOERROR; _x._tcp.example.org. SRV ")
	if n := w.queries("_tcp"); n != 0 {
		t.Error("a label with _ is asked for alone")
	}
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func rr(t testing.TB, s string) dns.RR {
	t.Helper()
	r, err := dns.NewRR(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A DS RRset that a referral told ends with the delegation. Its own longer TTL does not make it due to be fetched again
// from the start.
func TestReferredDSIsNotDue(t *testing.T) {
	w := small(t)
	org := authority{[]*zoneText{parseZone(t, strings.ReplaceAll(orgZone, "example.org. 3600 IN NS", "example.org. 300 IN NS"))}}
	w.servers[addr("10.0.1.1")] = func(q *dns.Msg, tcp bool) *dns.Msg {
		m := org.answer(q, tcp)
		if len(m.Ns) > 0 && m.Ns[0].Header().Rrtype == dns.TypeNS {
			m.Ns = append(m.Ns, rr(t, "example.org. 86400 IN DS 1 13 2 00"), rr(t, "example.org. 86400 IN RRSIG DS 13 2 86400 20400101000000 20200101000000 1 org. AA=="))
		}
		return m
	}
	w.resolve("www.example.org.", "A")
	w.queries("")
	for _, later := range []store.Time{0, 200, 99} {
		w.now += later * store.Second
		r := w.resolve("example.org.", "DS")
		if len(r.Answer) != 1 || r.Answer[0].TTL > 300 || r.Due || w.queries("") != 0 {
			t.Errorf("%d s later: %s, due %v, %d queries", later, r.text(), r.Due, r.Queries)
		}
	}
}

// Keys are due when half of their TTL is over, other RRsets in the last tenth.
func TestDue(t *testing.T) {
	w := small(t)
	zone := authority{[]*zoneText{parseZone(t, "example.org. 300 IN SOA a. b. 1 2 3 4 300\nexample.org. 300 IN DNSKEY 257 3 13 AAAA\nexample.org. 300 IN TXT x\n")}}
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = zone.answer, zone.answer
	for typ, due := range map[string]store.Time{"DNSKEY": 150, "TXT": 270} {
		w.resolve("example.org.", typ)
		for _, at := range []store.Time{due - 2, due} {
			w.now += at * store.Second
			if r := w.resolve("example.org.", typ); len(r.Answer) != 1 || r.Queries != 0 || r.Due != (at == due) {
				t.Errorf("%s after %d s: %s, due %v, %d queries", typ, at, r.text(), r.Due, r.Queries)
			}
			w.now -= at * store.Second
		}
	}
}

// A root whose servers have little in common with the hints is told of, and used only if it may be.
func TestStrangeRoot(t *testing.T) {
	const rest = `
. 86400 IN SOA a.root. x. 1 2 3 4 300
org. 86400 IN NS a.nic.org.
a.nic.org. 86400 IN A 10.0.1.1
`
	for _, tc := range []struct {
		what, ns, why string
	}{
		{"the same", ". 86400 IN NS a.root.\na.root. 86400 IN A 10.0.0.1\n", ""},
		{"one more", ". 86400 IN NS a.root.\n. 86400 IN NS b.root.\na.root. 86400 IN A 10.0.0.1\na.root. 86400 IN A 10.0.0.9\nb.root. 86400 IN A 10.0.0.9\n", ""},
		{"another name", ". 86400 IN NS b.root.\nb.root. 86400 IN A 10.0.0.1\n", "none of the root's servers is one of the hints"},
		{"another address", ". 86400 IN NS a.root.\na.root. 86400 IN A 10.0.0.9\n", "a.root. has no address that the hints have"},
		{"no address", ". 86400 IN NS a.root.\n", ""},
	} {
		for _, vets := range []string{"", "never", "later"} {
			w := newWorld(t)
			root := authority{[]*zoneText{parseZone(t, rest+tc.ns)}}
			for _, at := range []string{"10.0.0.1", "10.0.0.9"} {
				w.servers[addr(at)] = func(q *dns.Msg, tcp bool) *dns.Msg {
					m := root.answer(q, tcp)
					for line := range strings.Lines(tc.ns) {
						if a := rr(t, line); a.Header().Rrtype == dns.TypeA && q.Question[0].Qtype == dns.TypeNS {
							m.Extra = append(m.Extra, a)
						}
					}
					return m
				}
			}
			w.serve("10.0.1.1", orgZone)
			w.serve("10.0.2.1", exampleZone)
			w.serve("10.0.2.2", exampleZone)
			told, failed, later := "", "", func() {}
			w.conf.Shared.Unready = func(why string) { failed = why }
			w.conf.Shared.Strange = func(why string, set *rrset.Set, use func()) func() {
				if told = why; set.Type != dns.TypeNS || set.Name != rrset.Root {
					t.Errorf("%s: %v", tc.what, set)
				}
				if vets == "" {
					return nil
				}
				return func() { later = use }
			}
			w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
			if told != tc.why || failed != map[bool]string{true: tc.why}[vets != ""] {
				t.Errorf("%s, %s: told %q, failed with %q", tc.what, vets, told, failed)
			}
			held := tc.why != "" && vets != ""
			if d := w.conf.Stores.Delegations.Get(rrset.Root, w.now); (d == nil) != held || (w.conf.Shared.PrimedAt() == 0) != held {
				t.Errorf("%s, %s: the root is %v", tc.what, vets, d)
			}
			if vets == "later" && held {
				later()
				if d := w.conf.Stores.Delegations.Get(rrset.Root, w.now); d == nil || w.conf.Shared.PrimedAt() == 0 {
					t.Errorf("%s: it is not used", tc.what)
				}
			}
		}
	}
}
