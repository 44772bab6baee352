package iterate

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// Extended errors (RFC 8914) of those who ask for a Run.
const (
	codeNetwork = 23
	codeInvalid = 24
)

// A world is authorities on addresses, a clock, and what was asked. Runs are stepped in it by one goroutine; nothing is
// sent, and no time passes but by time-outs and by hand.
type world struct {
	t       testing.TB
	conf    *Config
	now     store.Time
	servers map[netip.Addr]server
	asked   []asked
	wild    func(a Action) *Event // if set, it is asked first
}

type asked struct {
	at   netip.Addr
	q    string // "name TYPE"
	tcp  bool
	edns bool
}

// server answers a question; nil is silence.
type server func(q *dns.Msg, tcp bool) *dns.Msg

// newWorld has a root at 10.0.0.1 with the hint a.root.
func newWorld(t testing.TB) *world {
	w := &world{t: t, now: 1e18, servers: map[netip.Addr]server{}}
	hints := &store.Delegation{Zone: rrset.Root, Fixed: true, Hosts: []store.Host{{Name: rrset.MustName("a.root."), Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}}}
	w.conf = &Config{
		Hints: hints, Stubs: map[string]*store.Delegation{}, Stores: store.New(16<<20, 10000), Shared: &Shared{}, IPv4: true, Port: 53,
		Budget: Budget{Queries: 128, Depth: 8, Aliases: 11, Hosts: 13, Octets: 512 << 10}, MaxTTL: 86400, MaxNeg: 3600,
		Denied: func(a netip.Addr) bool { return a.IsLoopback() }, Peer: func(netip.AddrPort) any { return nil },
	}
	return w
}

// serve puts an authority for zones at an address. Each zone is the text of a master file whose first record is its SOA.
func (w *world) serve(addr string, zones ...string) {
	a := authority{}
	for _, text := range zones {
		a.zones = append(a.zones, parseZone(w.t, text))
	}
	w.servers[netip.MustParseAddr(addr)] = a.answer
}

type zoneText struct {
	apex string
	rrs  []dns.RR
}

func parseZone(t testing.TB, text string) *zoneText {
	z := &zoneText{}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		rr, err := dns.NewRR(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if z.apex == "" {
			z.apex = rr.Header().Name
		}
		z.rrs = append(z.rrs, rr)
	}
	return z
}

type authority struct{ zones []*zoneText }

// answer is RFC 1034 §4.3.2 without wildcards.
func (a authority) answer(q *dns.Msg, _ bool) *dns.Msg {
	m := new(dns.Msg).SetReply(q)
	name, typ := strings.ToLower(q.Question[0].Name), q.Question[0].Qtype
	var z *zoneText
	for _, o := range a.zones {
		if dns.IsSubDomain(o.apex, name) && (z == nil || len(o.apex) > len(z.apex)) && (typ != dns.TypeDS || o.apex != name || name == ".") {
			z = o
		}
	}
	if z == nil {
		m.Rcode = dns.RcodeRefused
		return m
	}
	if z.refer(m, name, typ) {
		return m
	}
	m.Authoritative = true
	for range 20 {
		exists, target := false, ""
		for _, rr := range z.rrs {
			h := rr.Header()
			exists = exists || dns.IsSubDomain(name, h.Name)
			if h.Name != name {
				continue
			}
			if h.Rrtype == typ {
				m.Answer = append(m.Answer, rr)
			} else if c, ok := rr.(*dns.CNAME); ok {
				m.Answer, target = append(m.Answer, rr), c.Target
			}
		}
		if target == "" || !dns.IsSubDomain(z.apex, target) {
			if len(m.Answer) == 0 {
				m.Ns = append(m.Ns, z.rrs[0])
				if !exists {
					m.Rcode = dns.RcodeNameError
				}
			}
			return m
		}
		name = target
	}
	return m
}

// refer makes m a referral if name is at or below a cut.
func (z *zoneText) refer(m *dns.Msg, name string, typ uint16) bool {
	cut := ""
	for _, rr := range z.rrs {
		h := rr.Header()
		if h.Rrtype == dns.TypeNS && h.Name != z.apex && dns.IsSubDomain(h.Name, name) && (typ != dns.TypeDS || h.Name != name) {
			cut = h.Name
		}
	}
	if cut == "" {
		return false
	}
	hosts := map[string]bool{}
	for _, rr := range z.rrs {
		if ns, ok := rr.(*dns.NS); ok && ns.Hdr.Name == cut {
			m.Ns = append(m.Ns, rr)
			hosts[ns.Ns] = true
		}
	}
	for _, rr := range z.rrs {
		if t := rr.Header().Rrtype; hosts[rr.Header().Name] && (t == dns.TypeA || t == dns.TypeAAAA) {
			m.Extra = append(m.Extra, rr)
		}
	}
	return true
}

// resolve takes a Run through the world, and returns its Result.
func (w *world) resolve(name, typ string) *Result { return w.run(name, typ, false) }

func (w *world) run(name, typ string, refresh bool) *Result {
	w.t.Helper()
	return w.through(New(w.conf, Question{rrset.MustName(name), dns.StringToType[typ]}, refresh))
}

// through takes r through the world.
func (w *world) through(r *Run) *Result {
	w.t.Helper()
	queue := append([]Action(nil), r.Step(Event{Kind: Begun}, w.now)...)
	for range 10000 {
		if len(queue) == 0 {
			w.t.Fatalf("%v: the Run neither asks nor ends", r.root.q)
		}
		a := queue[0]
		queue = queue[1:]
		if a.Kind == Finish {
			return r.Result()
		}
		queue = append(queue, r.Step(w.exchange(a), w.now)...)
	}
	w.t.Fatalf("%v: the Run never ends", r.root.q)
	return nil
}

// exchange is what comes of a question in the world.
func (w *world) exchange(a Action) Event {
	w.t.Helper()
	at := a.Server.Addr.Addr()
	w.asked = append(w.asked, asked{at, rrset.Text(a.Question.Name) + " " + dns.TypeToString[a.Question.Type], a.TCP, a.EDNS})
	if w.wild != nil {
		if ev := w.wild(a); ev != nil {
			ev.Ask = a.Ask
			return *ev
		}
	}
	q := new(dns.Msg).SetQuestion(rrset.Text(a.Question.Name), a.Question.Type)
	if a.EDNS {
		q.SetEdns0(1232, true)
	}
	var m *dns.Msg
	if s := w.servers[at]; s != nil {
		m = s(q, a.TCP)
	}
	if m == nil {
		w.now += store.Time(a.Wait)
		return Event{Kind: TimedOut, Ask: a.Ask, TCP: a.TCP}
	}
	if q.IsEdns0() != nil && m.IsEdns0() == nil && m.Rcode != dns.RcodeFormatError {
		m.SetEdns0(1232, true)
	}
	b, err := m.Pack()
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := rrset.Parse(b)
	if err != nil {
		return Event{Kind: Failed, Ask: a.Ask, Code: codeInvalid, Text: err.Error(), TCP: a.TCP}
	}
	return Event{Kind: Replied, Ask: a.Ask, Reply: p, RTT: 10 * time.Millisecond, TCP: a.TCP}
}

// queries is how many questions there were, since the last call, that begin like that.
func (w *world) queries(prefix string) (n int) {
	for _, a := range w.asked {
		if strings.HasPrefix(a.q, prefix) {
			n++
		}
	}
	w.asked = nil
	return n
}

// text is a Result in short: rcode, answers as "owner TYPE", the extended error.
func (r *Result) text() string {
	s := []string{dns.RcodeToString[r.Rcode]}
	for _, a := range r.Answer {
		v := ""
		switch a.Type {
		case dns.TypeA, dns.TypeAAAA:
			v = rrset.Address(a.First()).String()
		case dns.TypeCNAME, dns.TypeDNAME, dns.TypeNS:
			v = rrset.Text(a.First())
		}
		s = append(s, fmt.Sprintf("%s %s %s", rrset.Text(a.Name), dns.TypeToString[a.Type], v))
	}
	if r.Told {
		s = append(s, fmt.Sprintf("EDE %d", r.Code))
	}
	return strings.Join(s, "; ")
}

// want compares a Result with its text.
func (w *world) want(name, typ, want string) *Result {
	w.t.Helper()
	r := w.resolve(name, typ)
	if got := r.text(); got != want {
		w.t.Errorf("%s %s:\n got %s\nwant %s", name, typ, got, want)
	}
	return r
}

const rootZone = `
. 86400 IN SOA a.root. x. 1 2 3 4 300
. 86400 IN NS a.root.
a.root. 86400 IN A 10.0.0.1
org. 86400 IN NS a.nic.org.
a.nic.org. 86400 IN A 10.0.1.1
net. 86400 IN NS a.nic.net.
a.nic.net. 86400 IN A 10.0.1.2
`

const orgZone = `
org. 3600 IN SOA a.nic.org. x. 1 2 3 4 300
org. 3600 IN NS a.nic.org.
a.nic.org. 3600 IN A 10.0.1.1
example.org. 3600 IN NS ns1.example.org.
example.org. 3600 IN NS ns2.example.org.
ns1.example.org. 3600 IN A 10.0.2.1
ns2.example.org. 3600 IN A 10.0.2.2
`

const exampleZone = `
example.org. 3600 IN SOA ns1.example.org. x. 1 2 3 4 300
example.org. 3600 IN NS ns1.example.org.
example.org. 3600 IN NS ns2.example.org.
ns1.example.org. 3600 IN A 10.0.2.1
ns2.example.org. 3600 IN A 10.0.2.2
www.example.org. 3600 IN A 192.0.2.1
a.ent.example.org. 3600 IN A 192.0.2.2
alias.example.org. 3600 IN CNAME www.example.org.
out.example.org. 3600 IN CNAME www.example.net.
loop.example.org. 3600 IN CNAME pool.example.org.
pool.example.org. 3600 IN CNAME loop.example.org.
`

// small is a world with a root, org, and example.org on two servers.
func small(t testing.TB) *world {
	w := newWorld(t)
	w.serve("10.0.0.1", rootZone)
	w.serve("10.0.1.1", orgZone)
	w.serve("10.0.2.1", exampleZone)
	w.serve("10.0.2.2", exampleZone)
	return w
}
