package iterate

import (
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
