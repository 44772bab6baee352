package lab

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test"

	"github.com/miekg/dns"
)

// exchange is Ask for a message, and gives the whole reply as text, without what differs from time to time.
func exchange(t *testing.T, resolver string, q *dns.Msg, network string) string {
	t.Helper()
	c := dns.Client{Net: network}
	m, _, err := c.Exchange(q, resolver)
	if err != nil {
		t.Fatal(err)
	}
	m.Id = 0
	for _, s := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range s {
			if rr.Header().Rrtype != dns.TypeOPT {
				rr.Header().Ttl = 0
			}
		}
	}
	return m.String()
}

func queriesOf(l *Lab) (all []*dns.Msg) {
	add := func(name string, typ uint16, edit func(*dns.Msg)) {
		q := new(dns.Msg).SetQuestion(name, typ)
		if edit != nil {
			edit(q)
		}
		all = append(all, q)
	}
	for i, q := range l.Questions {
		add(q.Name, q.Type, func(m *dns.Msg) {
			if i%2 == 0 {
				m.SetEdns0(1232, i%4 == 0)
			}
		})
	}
	for _, name := range []string{"localhost.", "a.localhost.", "onion.", "x.onion.", "1.0.0.10.in-addr.arpa.", "10.in-addr.arpa."} {
		for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeSOA, dns.TypeNS, dns.TypePTR} {
			add(name, typ, func(m *dns.Msg) { m.SetEdns0(1232, false) })
		}
	}
	www := l.Questions[0].Name
	add(www, dns.TypeA, func(m *dns.Msg) { m.RecursionDesired = false })
	add("cold."+www, dns.TypeA, func(m *dns.Msg) { m.RecursionDesired = false; m.SetEdns0(1232, false) })
	add(www, dns.TypeA, func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS; m.SetEdns0(1232, false) })
	add(www, dns.TypeNXNAME, func(m *dns.Msg) { m.SetEdns0(1232, false) })
	add(www, dns.TypeIXFR, func(m *dns.Msg) { m.SetEdns0(1232, false) })
	add(strings.ToUpper(www), dns.TypeA, nil)
	return all
}

// Both lanes give the same replies, over UDP and TCP.
func TestLanes(t *testing.T) {
	defer func(was bool) { dnsserver.WireLane = was }(dnsserver.WireLane)
	var replies [2][]string
	var l *Lab
	for i, wire := range []bool{true, false} {
		dnsserver.WireLane = wire
		var resolver string
		l, resolver = start(t, 1, int(Faults), "")
		for _, q := range queriesOf(l) {
			for _, network := range []string{"udp", "tcp"} {
				replies[i] = append(replies[i], exchange(t, resolver, q.Copy(), network))
			}
		}
	}
	same := 0
	for i := range replies[0] {
		if replies[0][i] != replies[1][i] {
			t.Errorf("wire lane\n%s\nmessage lane\n%s", replies[0][i], replies[1][i])
			continue
		}
		same++
	}
	if same < 100 {
		t.Errorf("only %d replies are the same", same)
	}
}

// What stays inside (RFC 6761, 6303), and what clients get that do not desire recursion.
func TestLocalNames(t *testing.T) {
	l, resolver := start(t, 1, 1, "")
	www := l.Questions[0].Name
	for _, c := range []struct {
		name, want string
		typ        uint16
		rd         bool
	}{
		{"localhost.", "0 127.0.0.1 []", dns.TypeA, true},
		{"x.onion.", "3  []", dns.TypeA, true},
		{"1.0.0.10.in-addr.arpa.", "3  []", dns.TypePTR, true},
		{"10.in-addr.arpa.", "0  []", dns.TypeA, true},
		{www, "5  [20]", dns.TypeA, false},
		{www, "0 192.0.2.1 []", dns.TypeA, true},
		{www, "0 192.0.2.1 []", dns.TypeA, false},
		{www, "5  [21]", dns.TypeAXFR, true},
		{www, "1  [30]", dns.TypeNXNAME, true},
		{www, "1  [30]", dns.TypeOPT, false},
		{"x.onion.", "1  [30]", 200, true},
		{"a." + www, "3  []", dns.TypeNone, true},
		{"hop" + www[3:], "0  []", dns.TypeNone, true},
		{"hop" + www[3:], "0 192.0.2.1 []", dns.TypeA, true},
	} {
		q := new(dns.Msg).SetQuestion(c.name, c.typ)
		q.RecursionDesired = c.rd
		a, err := ask(resolver, q)
		if got := fmt.Sprintf("%d %s %v", a.Rcode, a.Addr, a.EDE); err != nil || got != c.want {
			t.Errorf("%s %d: %s %v, want %s", c.name, c.typ, got, err, c.want)
		}
	}
}

func TestSnoopAndPrivate(t *testing.T) {
	l, resolver := start(t, 1, 1, "snoop\n private_addresses 192.0.2.0/24 except wild.z0.t0\n")
	www := l.Questions[0].Name
	q := new(dns.Msg).SetQuestion("x."+www, dns.TypeA)
	q.RecursionDesired = false
	if m := exchange(t, resolver, q, "udp"); !strings.Contains(m, "a.root.lab.") || !strings.Contains(m, "NOERROR") {
		t.Errorf("cold:\n%s", m)
	}
	if a, err := Ask(resolver, www, dns.TypeA); err != nil || a.Addr != "" || fmt.Sprint(a.EDE) != "[17]" {
		t.Errorf("a private address: %v %v", a, err)
	}
	if a, err := Ask(resolver, "x.wild.z0.t0.", dns.TypeA); err != nil || a.Addr == "" {
		t.Errorf("an excepted one: %v %v", a, err)
	}
	if m := exchange(t, resolver, q, "udp"); !strings.Contains(m, "ns1.z0.t0.") {
		t.Errorf("warm:\n%s", m)
	}
	q.SetQuestion("z0.t0.", dns.TypeDS)
	q.RecursionDesired = false
	if m := exchange(t, resolver, q, "udp"); !strings.Contains(m, "ns.nic.t0.") || strings.Contains(m, "ns1.z0.t0.") {
		t.Errorf("DS:\n%s", m)
	}
}

// A reload that does not change the stanza loses no query and forgets nothing.
func TestReload(t *testing.T) {
	l, err := Build(t.TempDir(), loopback.Port(), 2, 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	if err := l.Start(); err != nil {
		t.Skipf("the addresses 127.9.0.0/16 cannot be listened on: %v", err)
	}
	corefile := l.Resolver(loopback.Port(), "")
	i, resolver, _, err := test.CoreDNSServerAndPorts(corefile)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { i.ShutdownCallbacks(); test.CoreDNSServerStop(i) }()
	var all sync.WaitGroup
	var lost, asked atomic.Int64
	done := make(chan struct{})
	for g := range 8 {
		all.Go(func() {
			for n := g; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				q := l.Questions[n%len(l.Questions)]
				asked.Add(1)
				if a, err := Ask(resolver, q.Name, q.Type); err != nil || a.Rcode != q.Rcode || a.Addr != q.Addr {
					lost.Add(1)
				}
			}
		})
	}
	for range 3 {
		if i, err = i.Restart(test.NewInput(corefile)); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(30 * time.Second); asked.Load() < 50 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	close(done)
	all.Wait()
	if lost.Load() != 0 || asked.Load() < 50 {
		t.Errorf("%d of %d queries had another answer, or none", lost.Load(), asked.Load())
	}
	www := l.Questions[0]
	if _, err := Ask(resolver, www.Name, www.Type); err != nil {
		t.Fatal(err)
	}
	if i, err = i.Restart(test.NewInput(corefile)); err != nil {
		t.Fatal(err)
	}
	q := new(dns.Msg).SetQuestion(www.Name, www.Type)
	q.RecursionDesired = false
	if a, err := ask(resolver, q); err != nil || a.Addr != www.Addr {
		t.Errorf("what was kept is forgotten: %v %v", a, err)
	}
}
