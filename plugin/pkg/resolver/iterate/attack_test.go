package iterate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// evil makes both servers of example.org answer as it wants to.
func (w *world) evil(f func(q *dns.Msg, m *dns.Msg)) {
	a := authority{[]*zoneText{parseZone(w.t, exampleZone)}}
	s := func(q *dns.Msg, tcp bool) *dns.Msg {
		m := a.answer(q, tcp)
		f(q, m)
		return m
	}
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = s, s
}

// clean fails if a store holds an address of the attacker, 203.0.113.66, or a name of his.
func (w *world) clean() {
	w.t.Helper()
	bad := string(addr("203.0.113.66").AsSlice())
	w.conf.Stores.RRsets.Each(func(name string, typ uint16, e *store.Entry) {
		for _, s := range append([]*rrset.Set{e.Set, e.SOA}, e.Denials...) {
			if s != nil && (s.Has(bad) || strings.Contains(rrset.Text(s.Name), "evil") || strings.Contains(s.First(), "evil")) {
				w.t.Errorf("kept: %s %s", rrset.Text(s.Name), dns.TypeToString[s.Type])
			}
		}
	})
	for _, zone := range []string{".", "org.", "net.", "example.org.", "example.net.", "www.example.org."} {
		if d := w.conf.Stores.Delegations.Get(rrset.MustName(zone), w.now); d != nil {
			for _, h := range d.Hosts {
				if strings.Contains(rrset.Text(h.Name), "evil") || fmt.Sprint(h.Addrs) == "[203.0.113.66]" {
					w.t.Errorf("the delegation of %s has %s %v", zone, rrset.Text(h.Name), h.Addrs)
				}
			}
		}
	}
}

// What is not asked for is kept nowhere: NS records beside answers and denials, addresses of other names, other
// zones, the root (R2, R9; CVE-2025-11411, CVE-2025-40778).
func TestNothingUnrelatedIsKept(t *testing.T) {
	for name, add := range map[string]func(q, m *dns.Msg){
		"NS of the zone beside an answer": func(_, m *dns.Msg) {
			m.Ns = append(m.Ns, rr(t, "example.org. 86400 IN NS evil.example.org."))
			m.Extra = append(m.Extra, rr(t, "evil.example.org. 86400 IN A 203.0.113.66"))
		},
		"NS of the parent": func(_, m *dns.Msg) {
			m.Ns = append(m.Ns, rr(t, "org. 86400 IN NS evil.org."))
			m.Extra = append(m.Extra, rr(t, "evil.org. 86400 IN A 203.0.113.66"))
		},
		"NS of the root": func(_, m *dns.Msg) {
			m.Ns = append(m.Ns, rr(t, ". 86400 IN NS a.root."))
			m.Extra = append(m.Extra, rr(t, "a.root. 86400 IN A 203.0.113.66"))
		},
		"addresses of servers": func(_, m *dns.Msg) {
			m.Extra = append(m.Extra, rr(t, "ns1.example.org. 86400 IN A 203.0.113.66"), rr(t, "a.nic.org. 86400 IN A 203.0.113.66"))
		},
		"another name in the answer": func(_, m *dns.Msg) {
			m.Answer = append(m.Answer, rr(t, "example.net. 86400 IN A 203.0.113.66"), rr(t, "mail.example.org. 86400 IN A 203.0.113.66"))
		},
		"another zone's SOA": func(_, m *dns.Msg) {
			m.Ns = append([]dns.RR{rr(t, "evil.org. 86400 IN SOA evil. evil. 1 2 3 4 5")}, m.Ns...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := small(t)
			w.evil(func(q, m *dns.Msg) { add(q, m) })
			w.resolve("www.example.org.", "A")
			w.resolve("alias.example.org.", "A")
			w.resolve("www.example.org.", "MX")
			w.resolve("a.ent.example.org.", "A")
			w.clean()
			w.want("ns1.example.org.", "A", "NOERROR; ns1.example.org. A 10.0.2.1")
		})
	}
}

// Glue that is not to be asked is dropped, one record at a time; the rest of the referral stands.
func TestForbiddenGlue(t *testing.T) {
	w := newWorld(t)
	w.serve("10.0.0.1", rootZone)
	w.serve("10.0.1.1", strings.Replace(orgZone, "ns2.example.org. 3600 IN A 10.0.2.2", "ns2.example.org. 3600 IN A 127.0.0.1", 1))
	w.serve("10.0.2.1", exampleZone)
	for range 10 {
		w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
		for _, a := range w.asked {
			if a.at.IsLoopback() {
				t.Fatal("loopback was asked")
			}
		}
		w.conf.Stores.RRsets.Forget(rrset.Root, true)
	}
}

// Glue of names that are not the referring zone's to give is not used.
func TestForeignGlue(t *testing.T) {
	w := newWorld(t)
	w.serve("10.0.0.1", rootZone)
	w.serve("10.0.1.1", "org. 3600 IN SOA a. b. 1 2 3 4 5\nexample.org. 3600 IN NS ns.example.net.\nns.example.net. 3600 IN A 203.0.113.66\n")
	w.serve("10.0.1.2", "net. 3600 IN SOA a. b. 1 2 3 4 5\nexample.net. 3600 IN NS ns.example.net.\nns.example.net. 3600 IN A 10.0.2.1\n")
	w.serve("10.0.2.1", exampleZone, "example.net. 3600 IN SOA a. b. 1 2 3 4 5\nns.example.net. 3600 IN A 10.0.2.1\n")
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	for _, a := range w.asked {
		if a.at == addr("203.0.113.66") {
			t.Error("the attacker's address was asked")
		}
	}
}

// Ghost and phoenix domains (R5 to R8): what its own servers say does not make a delegation's life longer than
// the parent's TTL, whether NS sets, addresses, or delegations further below are asked for.
func TestGhosts(t *testing.T) {
	for name, keepAlive := range map[string]func(w *world){
		"NS queries":  func(w *world) { w.run("example.org.", "NS", true) },
		"A queries":   func(w *world) { w.run("www.example.org.", "A", true); w.run("ns1.example.org.", "A", true) },
		"below":       func(w *world) { w.run("www.sub.example.org.", "A", true) },
		"new glue":    func(w *world) { w.run("a.ent.example.org.", "A", true) },
		"the DS":      func(w *world) { w.run("example.org.", "DS", true) },
		"ANY queries": func(w *world) { w.run("www.example.org.", "ANY", true) },
	} {
		t.Run(name, func(t *testing.T) {
			w := small(t)
			ghost := strings.ReplaceAll(exampleZone, " 3600 ", " 43200 ") + "sub.example.org. 43200 IN NS ns3.example.org.\nns3.example.org. 43200 IN A 10.0.2.3\n"
			sub := "sub.example.org. 43200 IN SOA a. b. 1 2 3 4 5\nsub.example.org. 43200 IN NS ns3.example.org.\nwww.sub.example.org. 43200 IN A 192.0.2.77\n"
			w.serve("10.0.2.1", ghost)
			w.serve("10.0.2.2", ghost)
			w.serve("10.0.2.3", sub)
			w.want("www.sub.example.org.", "A", "NOERROR; www.sub.example.org. A 192.0.2.77")
			began := w.now
			w.serve("10.0.1.1", "org. 3600 IN SOA a. b. 1 2 3 4 300\norg. 3600 IN NS a.nic.org.\na.nic.org. 3600 IN A 10.0.1.1\n") // taken away
			for w.now < began+3600*store.Second-60*store.Second {
				keepAlive(w)
				w.now += 60 * store.Second
			}
			w.now = began + 3601*store.Second
			w.conf.Stores.RRsets.Forget(rrset.MustName("org."), true) // answers live as long as they like
			for _, q := range []string{"new.example.org.", "new.sub.example.org.", "www.sub.example.org."} {
				w.want(q, "A", "NXDOMAIN")
			}
		})
	}
}

// A hundred servers without addresses (NXNSAttack): the victim sees ten queries at most (R19).
func TestNXNS(t *testing.T) {
	w := newWorld(t)
	w.serve("10.0.0.1", rootZone)
	org := "org. 3600 IN SOA a. b. 1 2 3 4 5\norg. 3600 IN NS a.nic.org.\na.nic.org. 3600 IN A 10.0.1.1\n"
	for i := range 100 {
		org += fmt.Sprintf("example.org. 3600 IN NS n%d.example.net.\n", i)
	}
	w.serve("10.0.1.1", org)
	w.serve("10.0.1.2", "net. 3600 IN SOA a. b. 1 2 3 4 5\nexample.net. 3600 IN NS ns.example.net.\nns.example.net. 3600 IN A 10.0.3.1\n")
	w.serve("10.0.3.1", "example.net. 3600 IN SOA a. b. 1 2 3 4 5\n")
	if r := w.resolve("www.example.org.", "A"); r.Rcode != dns.RcodeServerFailure {
		t.Errorf("got %s", r.text())
	}
	victim := 0
	for _, a := range w.asked {
		if a.at == addr("10.0.3.1") {
			victim++
		}
	}
	if victim == 0 || victim > 10 {
		t.Errorf("the victim saw %d queries, want 1 to 10", victim)
	}
}

// Two zones whose servers lie in each other (TsuNAME, R20).
func TestServersInEachOther(t *testing.T) {
	w := newWorld(t)
	w.serve("10.0.0.1", rootZone)
	w.serve("10.0.1.1", "org. 3600 IN SOA a. b. 1 2 3 4 5\nexample.org. 3600 IN NS ns.example.net.\n")
	w.serve("10.0.1.2", "net. 3600 IN SOA a. b. 1 2 3 4 5\nexample.net. 3600 IN NS ns.example.org.\n")
	r := w.resolve("www.example.org.", "A")
	if r.Rcode != dns.RcodeServerFailure || len(w.asked) > 20 {
		t.Errorf("%s after %d queries: %v", r.text(), len(w.asked), w.asked)
	}
	w.asked = nil
	for i := range 20 {
		w.resolve(fmt.Sprintf("w%d.example.org.", i), "A")
	}
	if len(w.asked) > 20 {
		t.Errorf("20 more names: %d queries", len(w.asked))
	}
}

// Referrals that go deeper with each label (iDNS), and aliases that lead through zones (CAMP): the budget holds over the whole tree.
func TestBudget(t *testing.T) {
	w := small(t)
	n := 0
	w.wild = func(a Action) *Event { // every zone has three servers without addresses in new zones
		m := new(dns.Msg).SetQuestion(rrset.Text(a.Question.Name), a.Question.Type)
		m.Response = true
		if a.Question.Type == dns.TypeNS {
			m.Answer = append(m.Answer, rr(t, ". 3600 IN NS a.root."))
			m.Extra = append(m.Extra, rr(t, "a.root. 3600 IN A 10.0.0.1"))
		} else {
			cut := a.Question.Name
			for rrset.Labels(cut) > rrset.Labels(a.Zone)+1 {
				cut = rrset.Parent(cut)
			}
			for i := range 3 {
				n++
				host := fmt.Sprintf("ns.z%d.y%d.x%d.org.", n, n, i)
				m.Ns = append(m.Ns, rr(t, rrset.Text(cut)+" 3600 IN NS "+host))
				if n%2 == 0 {
					m.Extra = append(m.Extra, rr(t, fmt.Sprintf("%s 3600 IN A 10.9.%d.%d", host, n/200, n%200+1)))
				}
			}
		}
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		p, err := rrset.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		return &Event{Kind: Replied, Reply: p}
	}
	r := w.resolve("a.b.c.d.e.f.g.h.example.org.", "A")
	if r.Rcode != dns.RcodeServerFailure || r.Queries > w.conf.Budget.Queries {
		t.Errorf("%s after %d queries", r.text(), r.Queries)
	}
	w.conf.Budget.Queries = 5
	w.now += 1000 * store.Second
	if r = w.resolve("b.c.d.e.f.g.h.example.org.", "A"); r.Queries > 5 {
		t.Errorf("%d queries with a budget of 5", r.Queries)
	}
}

// Whatever replies say, a Run ends, within its budget.
func FuzzReplies(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08"), "www.example.org.")
	f.Fuzz(func(t *testing.T, script []byte, name string) {
		if _, ok := dns.IsDomainName(name); !ok || len(name) > 200 {
			return
		}
		n, err := rrset.Name(name)
		if err != nil {
			return
		}
		w := newWorld(t)
		at := 0
		next := func() int {
			if len(script) == 0 {
				return 0
			}
			at++
			return int(script[at%len(script)]) + at
		}
		w.wild = func(a Action) *Event {
			m := &rrset.Message{Name: a.Question.Name, Type: a.Question.Type, Size: 100, EDNS: next()%2 == 0}
			switch next() % 8 {
			case 0:
				return &Event{Kind: TimedOut, Doubted: next() % 3}
			case 1:
				return &Event{Kind: Failed, Forged: next()%2 == 0}
			case 2:
				m.Rcode = next() % 17
			case 3:
				m.Flags = 0x0200
			}
			if next()%2 == 0 {
				m.Flags |= 0x0400
			}
			target := []string{a.Question.Name, "\x01x" + rrset.Root, rrset.Parent(a.Question.Name), n}[next()%4]
			for s := range 2 {
				for range next() % 3 {
					owner := []string{a.Question.Name, a.Zone, rrset.Parent(a.Question.Name), rrset.Last(n, rrset.Labels(a.Zone)+1), rrset.Root}[next()%5]
					typ := []uint16{1, 2, 5, 39, 6, 28, a.Question.Type}[next()%7]
					data := target
					switch typ {
					case 1:
						data = "\x0a\x00\x00" + string(rune(next()%100))
					case 6:
						data = "\x00\x00" + strings.Repeat("\x00", 20)
					case 28:
						data = strings.Repeat("\x20", 16)
					}
					m.Section[s] = append(m.Section[s], rrset.New(owner, typ, uint32(next()), data))
				}
			}
			return &Event{Kind: Replied, Reply: m}
		}
		r := New(w.conf, Question{n, 1}, false)
		queue := append([]Action(nil), r.Step(Event{Kind: Begun}, w.now)...)
		for i := 0; len(queue) > 0 && queue[0].Kind != Finish; i++ {
			if i > w.conf.Budget.Queries {
				t.Fatalf("%d queries", i)
			}
			a := queue[0]
			ev := w.wild(a)
			ev.Ask = a.Ask
			queue = append(queue[1:], r.Step(*ev, w.now)...)
		}
		if len(queue) == 0 {
			t.Fatal("the Run neither asks nor ends")
		}
	})
}
