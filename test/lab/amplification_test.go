package lab

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/test"

	"github.com/miekg/dns"
)

// trap is a root and some domains that are made to have resolvers ask more than they are asked.
type trap struct {
	seen map[string]*atomic.Int64 // queries by address
}

const (
	trapRoot, trapEvil, trapVictim, trapSilent = "127.9.0.1", "127.9.4.1", "127.9.4.2", "127.9.4.3"
)

// delegations of the root: domain, server's name, address.
var delegations = [][3]string{
	{"nxns.", "ns.nxns.", trapEvil}, {"camp.", "ns.camp.", trapEvil}, {"deep.", "ns.deep.", trapEvil},
	{"victim.", "ns.victim.", trapVictim}, {"silent.", "ns.silent.", trapSilent}, {"good.", "ns.good.", trapVictim},
	{"one.", "ns.two.", ""}, {"two.", "ns.one.", ""},
}

func record(text string) dns.RR {
	rr, err := dns.NewRR(text)
	if err != nil {
		panic(err)
	}
	return rr
}

// reply is what the server at an address says, nil for nothing.
func (tr *trap) reply(at string, q *dns.Msg) *dns.Msg {
	m, name := new(dns.Msg).SetReply(q), strings.ToLower(q.Question[0].Name)
	labels := dns.SplitDomainName(name)
	switch at {
	case trapRoot:
		for _, d := range delegations {
			if dns.IsSubDomain(d[0], name) {
				m.Ns = append(m.Ns, record(d[0]+" 3600 IN NS "+d[1]))
				if d[2] != "" {
					m.Extra = append(m.Extra, record(d[1]+" 3600 IN A "+d[2]))
				}
				return m
			}
		}
		m.Authoritative = true
		if name == "." {
			m.Answer = append(m.Answer, record(". 3600 IN NS a.root.lab."))
			m.Extra = append(m.Extra, record("a.root.lab. 3600 IN A "+trapRoot))
			return m
		}
		m.Rcode = dns.RcodeNameError
	case trapEvil:
		switch {
		case len(labels) > 1 && labels[len(labels)-1] == "nxns": // a hundred servers, in the victim's domain
			cut := labels[len(labels)-2] + ".nxns."
			for i := range 100 {
				m.Ns = append(m.Ns, record(fmt.Sprintf("%s 3600 IN NS n%d-%s.victim.", cut, i, labels[len(labels)-2])))
			}
			return m
		case len(labels) > 1 && labels[len(labels)-1] == "camp": // an alias of the next name, for ever
			m.Authoritative = true
			m.Answer = append(m.Answer, record(fmt.Sprintf("%s 0 IN CNAME x%s.camp.", name, labels[len(labels)-2])))
			return m
		case len(labels) > 1 && labels[len(labels)-1] == "deep": // a zone for each label
			m.Ns = append(m.Ns, record(name+" 0 IN NS ns."+name))
			m.Extra = append(m.Extra, record("ns."+name+" 0 IN A "+trapEvil))
			return m
		}
		m.Authoritative, m.Ns = true, append(m.Ns, record(labels[len(labels)-1]+". 60 IN SOA a. b. 1 2 3 4 60"))
	case trapVictim:
		m.Authoritative = true
		if strings.HasPrefix(name, "www.good") {
			m.Answer = append(m.Answer, record(name+" 60 IN A 192.0.2.1"))
			return m
		}
		m.Rcode, m.Ns = dns.RcodeNameError, append(m.Ns, record(labels[len(labels)-1]+". 60 IN SOA a. b. 1 2 3 4 60"))
	case trapSilent:
		return nil
	}
	return m
}

func (tr *trap) start(t *testing.T) {
	for _, at := range []string{trapRoot, trapEvil, trapVictim, trapSilent} {
		n := new(atomic.Int64)
		tr.seen[at] = n
		p, err := net.ListenPacket("udp", at+":53")
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", at+":53")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*dns.Server{{PacketConn: p}, {Listener: l}} {
			s.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
				n.Add(1)
				if m := tr.reply(at, q); m != nil {
					if opt := q.IsEdns0(); opt != nil {
						m.SetEdns0(1232, opt.Do())
					}
					m.Truncate(dns.MaxMsgSize)
					_ = w.WriteMsg(m)
				}
			})
			go func() { _ = s.ActivateAndServe() }()
			t.Cleanup(func() { _ = s.Shutdown() })
		}
	}
}

// count is how many queries there were since the last call, by address.
func (tr *trap) count() (all map[string]int64) {
	time.Sleep(300 * time.Millisecond)
	all = map[string]int64{}
	for at, n := range tr.seen {
		all[at] = n.Swap(0)
	}
	return all
}

// How many queries one client query costs others, of ours and, with LAB_PEERS set, of the peers; and that ours stays within
// its bounds.
func TestAmplification(t *testing.T) {
	if !namespaced(t) {
		return
	}
	dir := t.TempDir()
	l := &Lab{Dir: dir, Port: 53, Hints: filepath.Join(dir, "hints")}
	if err := os.WriteFile(l.Hints, []byte(". 86400 IN NS a.root.lab.\na.root.lab. 86400 IN A 127.9.0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tr := &trap{seen: map[string]*atomic.Int64{}}
	tr.start(t)
	i, ours, _, err := test.CoreDNSServerAndPorts(l.Resolver(5301, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.ShutdownCallbacks(); test.CoreDNSServerStop(i) })
	resolvers := []struct{ name, addr string }{{"recurse", ours}}
	if os.Getenv("LAB_PEERS") != "" { // they take their time
		resolvers = append(resolvers, []struct{ name, addr string }{{"unbound", unbound(t, l, 5302)}, {"named", named(t, l, 5303)}}...)
	}
	for _, r := range resolvers {
		for range 50 {
			if a, err := Ask(r.addr, "www.good.", dns.TypeA); err == nil && a.Addr != "" {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	attacks := []struct {
		name    string
		queries int
		ask     func(i int) string
		at      string // whose queries count, all if empty
		most    int64  // of ours, a client query
	}{
		{"NXNS, at the victim", 5, func(i int) string { return fmt.Sprintf("www.a%d.nxns.", i) }, trapVictim, 10},
		{"CAMP, aliases for ever", 5, func(i int) string { return fmt.Sprintf("b%d.camp.", i) }, "", 128},
		{"servers in each other", 5, func(i int) string { return fmt.Sprintf("www%d.one.", i) }, "", 20},
		{"referrals without end", 5, func(i int) string { return fmt.Sprintf("a.b.c.d.e.f.g.h.i.j.k%d.deep.", i) }, "", 14},
		{"water torture, at the silent", 300, func(i int) string { return fmt.Sprintf("r%d.silent.", i) }, trapSilent, 8},
	}
	table := fmt.Sprintf("%-30s", "queries a client query")
	for _, r := range resolvers {
		table += fmt.Sprintf("%10s", r.name)
	}
	for _, a := range attacks {
		table += fmt.Sprintf("\n%-30s", a.name)
		for _, r := range resolvers {
			tr.count()
			var all sync.WaitGroup
			for n := range a.queries {
				all.Go(func() { _, _ = Ask(r.addr, a.ask(n), dns.TypeA) })
			}
			all.Wait()
			seen, sum := tr.count(), int64(0)
			for at, n := range seen {
				if a.at == "" || a.at == at {
					sum += n
				}
			}
			table += fmt.Sprintf("%10.1f", float64(sum)/float64(a.queries))
			if r.name == "recurse" && sum > a.most*int64(a.queries) {
				t.Errorf("%s: %d queries for %d of clients, more than %d each", a.name, sum, a.queries, a.most)
			}
		}
	}
	t.Logf("\n%s", table)
}
