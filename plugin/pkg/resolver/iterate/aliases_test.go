package iterate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

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

func ofType(rrs []dns.RR, typ uint16) (of []dns.RR) {
	for _, rr := range rrs {
		if rr.Header().Rrtype == typ {
			of = append(of, rr)
		}
	}
	return of
}

// NSEC and RRSIG records stand beside an alias: that it is kept does not keep who wants them from those of its owner. Where
// it has none, the alias leads on, whether it is kept or not.
func TestBesideAlias(t *testing.T) {
	for _, kept := range []bool{false, true} {
		w := small(t)
		nsec := "alias.example.org. 60 IN NSEC b.example.org. CNAME RRSIG NSEC\nwww.example.org. 60 IN NSEC example.org. A RRSIG NSEC\n"
		signature := "alias.example.org. 60 IN RRSIG CNAME 13 3 60 20370101000000 20260101000000 1 example.org. AAAA\n"
		zone := parseZone(t, exampleZone+nsec+signature)
		for _, at := range []string{"10.0.2.1", "10.0.2.2"} {
			w.servers[addr(at)] = func(q *dns.Msg, tcp bool) *dns.Msg {
				m := authority{[]*zoneText{zone}}.answer(q, tcp)
				if typ := q.Question[0].Qtype; typ == dns.TypeNSEC || typ == dns.TypeRRSIG {
					if own := ofType(m.Answer, typ); len(own) > 0 && own[0].Header().Name == q.Question[0].Name {
						m.Answer = own
					}
				}
				return m
			}
		}
		if kept {
			w.want("alias.example.org.", "A", "NOERROR; alias.example.org. CNAME www.example.org.; www.example.org. A 192.0.2.1")
			w.want("loop.example.org.", "CNAME", "NOERROR; loop.example.org. CNAME pool.example.org.")
		}
		w.want("alias.example.org.", "NSEC", "NOERROR; alias.example.org. NSEC ")
		w.want("alias.example.org.", "RRSIG", "NOERROR; alias.example.org. RRSIG ")
		w.want("loop.example.org.", "NSEC", "SERVFAIL; EDE 0")
	}
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
