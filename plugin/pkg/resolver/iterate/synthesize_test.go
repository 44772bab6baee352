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

// What follows from other names answers without a query; an alias of that kind is followed, to what is kept, to what
// follows once more, or to servers.
func TestSynthesize(t *testing.T) {
	w := small(t)
	cover := rrset.New(rrset.MustName("n.example.org."), rrset.TypeNSEC, 900, rrset.MustName("z.example.org."))
	soa := rrset.New(rrset.MustName("example.org."), dns.TypeSOA, 900, rrset.Root+rrset.Root+"\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01")
	alias := func(name, to string) store.Entry {
		return store.Entry{Set: rrset.New(rrset.MustName(name), dns.TypeCNAME, 900, rrset.MustName(to))}
	}
	all := map[string]store.Entry{
		"o.example.org.":    {Set: rrset.New(rrset.MustName("o.example.org."), dns.TypeA, 900, "\xc0\x00\x02\x07")},
		"p.example.org.":    alias("p.example.org.", "o.example.org."),
		"q.example.org.":    alias("q.example.org.", "www.example.org."),
		"r.example.org.":    alias("r.example.org.", "none.example.org."),
		"s.example.org.":    alias("s.example.org.", "s.example.org."),
		"none.example.org.": {Kind: store.NXDomain, SOA: soa},
	}
	w.conf.Synthesize = func(name string, typ uint16, now store.Time) *store.Inferred {
		e, ok := all[rrset.Text(name)]
		if !ok || typ != dns.TypeA {
			return nil
		}
		e.Zone, e.TTL, e.Expires, e.Denials = rrset.MustName("example.org."), 60, now.After(60), []*rrset.Set{cover}
		return &store.Inferred{Entry: e, By: "me"}
	}
	w.want("www.example.net.", "A", "SERVFAIL; EDE 22") // the root is primed
	for _, c := range []struct {
		name, want string
		queries    bool
	}{
		{"none.example.org.", "NXDOMAIN; EDE 29", false},
		{"o.example.org.", "NOERROR; o.example.org. A 192.0.2.7; EDE 29", false},
		{"p.example.org.", "NOERROR; p.example.org. CNAME o.example.org.; o.example.org. A 192.0.2.7; EDE 29", false},
		{"r.example.org.", "NXDOMAIN; r.example.org. CNAME none.example.org.; EDE 29", false},
		{"s.example.org.", "SERVFAIL; EDE 0", false},
		{"q.example.org.", "NOERROR; q.example.org. CNAME www.example.org.; www.example.org. A 192.0.2.1; EDE 29", true},
		{"q.example.org.", "NOERROR; q.example.org. CNAME www.example.org.; www.example.org. A 192.0.2.1; EDE 29", false},
	} {
		w.asked = nil
		r := w.want(c.name, "A", c.want)
		if len(w.asked) > 0 != c.queries {
			t.Errorf("%s: %v", c.name, w.asked)
		}
		if by := map[string]any{"none.example.org.": "me", "o.example.org.": "me"}[c.name]; r.By != by { // what aliases lead to may be another's
			t.Errorf("%s: found to be secure by %v, want %v", c.name, r.By, by)
		}
		if r.Rcode == dns.RcodeServerFailure {
			continue
		}
		if find(r.Authority, cover.Name, rrset.TypeNSEC) == nil || len(r.Authority) > 2 {
			t.Errorf("%s: the proof is %d RRsets", c.name, len(r.Authority))
		}
		for _, s := range append(r.Answer, r.Authority...) {
			if s.TTL > 60 && s.Name != rrset.MustName("www.example.org.") {
				t.Errorf("%s: %s has a TTL of %d", c.name, rrset.Text(s.Name), s.TTL)
			}
		}
	}
}

// Private addresses are in no answer, whether it is new, kept, or follows from other names.
func TestPrivate(t *testing.T) {
	w := small(t)
	w.conf.Private = func(_ string, a netip.Addr) bool { return a == netip.MustParseAddr("192.0.2.1") }
	w.conf.Synthesize = func(name string, _ uint16, now store.Time) *store.Inferred {
		if rrset.Text(name) != "o.example.org." {
			return nil
		}
		e := store.Entry{Set: rrset.New(name, dns.TypeA, 900, "\xc0\x00\x02\x01"), TTL: 60, Expires: now.After(60), Zone: rrset.Root}
		return &store.Inferred{Entry: e, By: "me"}
	}
	for _, round := range []string{"new", "kept"} {
		w.want("www.example.org.", "A", "NOERROR; EDE 17")
		w.want("alias.example.org.", "A", "NOERROR; alias.example.org. CNAME www.example.org.; EDE 17")
		if r := w.want("o.example.org.", "A", "NOERROR; EDE 17"); r.By != nil {
			t.Errorf("%v has found to be secure what is not all there", r.By)
		}
		w.want("a.ent.example.org.", "A", "NOERROR; a.ent.example.org. A 192.0.2.2")
		if t.Failed() {
			t.Fatal(round)
		}
	}
}

// Private addresses are in no answer to ANY, and in no hints. What is left of an RRset is told with the extended error,
// and is not what was secure.
func TestPrivateInPart(t *testing.T) {
	w := newWorld(t)
	w.conf.Private = func(_ string, a netip.Addr) bool { return a.Unmap().String() == "10.9.9.9" || a.String() == "fd00::9" }
	zone := parseZone(t, rootZone+`
both. 60 IN A 10.9.9.9
both. 60 IN A 192.0.2.7
all. 60 IN TXT x
all. 60 IN AAAA fd00::9
all. 60 IN A 10.9.9.9
https. 60 IN HTTPS 1 . alpn=h2 ipv4hint=192.0.2.7,10.9.9.9 ipv6hint=2001:db8::7 key65333=x
https. 60 IN HTTPS 2 a.b. mandatory=ipv6hint ipv4hint=10.9.9.9 ipv6hint=2001:db8::7
https. 60 IN HTTPS 3 a.b. mandatory=alpn,ipv6hint alpn=h2 ipv6hint=2001:db8::7,fd00::9
https. 60 IN HTTPS 0 alias.
only. 60 IN SVCB 1 . mandatory=ipv4hint ipv4hint=10.9.9.9
`)
	w.servers[netip.MustParseAddr("10.0.0.1")] = func(q *dns.Msg, tcp bool) *dns.Msg {
		m := authority{[]*zoneText{zone}}.answer(q, tcp)
		for _, rr := range zone.rrs {
			if q.Question[0].Qtype == dns.TypeANY && rr.Header().Name == q.Question[0].Name {
				m.Answer, m.Ns = append(m.Answer, rr), nil
			}
		}
		return m
	}
	const hints = `1 . alpn="h2" ipv6hint="2001:db8::7" key65333="x"; 2 a.b. mandatory="ipv6hint" ipv6hint="2001:db8::7"; 0 alias.; EDE 17`
	for _, round := range []string{"new", "kept"} {
		w.want("both.", "A", "NOERROR; both. A 192.0.2.7; EDE 17")
		w.want("only.", "SVCB", "NOERROR; EDE 17")
		r := w.resolve("https.", "HTTPS")
		if got := svcb(t, r) + fmt.Sprintf("; EDE %d", r.Code); got != hints || !r.Told {
			t.Errorf("%s:\n got %s\nwant %s", round, got, hints)
		}
	}
	w.want("all.", "ANY", "NOERROR; all. TXT ; EDE 17")
	w.conf.Synthesize = func(name string, _ uint16, now store.Time) *store.Inferred {
		e := store.Entry{Set: rrset.New(name, dns.TypeA, 900, "\xc0\x00\x02\x01", "\x0a\x09\x09\x09"), TTL: 60, Expires: now.After(60), Zone: rrset.Root}
		return &store.Inferred{Entry: e, By: "me"}
	}
	if r := w.want("new.", "A", "NOERROR; new. A 192.0.2.1; EDE 17"); r.By != nil {
		t.Errorf("%v has found to be secure what is not all there", r.By)
	}
}

// svcb is the text of SVCB records.
func svcb(t *testing.T, r *Result) string {
	var all []string
	for _, s := range r.Answer {
		s.Each(func(rdata string) bool {
			rr, _, err := dns.UnpackRRWithHeader(dns.RR_Header{Name: ".", Rrtype: s.Type, Class: 1, Rdlength: uint16(len(rdata))}, []byte(rdata), 0)
			if err != nil {
				t.Fatalf("%q: %v", rdata, err)
			}
			all = append(all, strings.TrimPrefix(rr.String(), rr.Header().String()))
			return true
		})
	}
	return strings.Join(all, "; ")
}
