package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test"

	"github.com/miekg/dns"
)

// forger is the root, and the only server: it answers each name with 192.0.2.1, after it has sent what somebody might who
// wants 203.0.113.66 to be believed. Over TCP it tells the truth alone.
type forger struct {
	udp    *net.UDPConn
	tcp    *dns.Server
	forge  func(q, reply *dns.Msg) (forged [][]byte)
	forged atomic.Int64

	mu    sync.Mutex
	ports []int
	ids   []int
}

func truth(q *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	switch {
	case q.Question[0].Name == ".":
		m.Answer = append(m.Answer, &dns.NS{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeNS, Class: 1, Ttl: 3600}, Ns: "a.root."})
	case q.Question[0].Qtype == dns.TypeA:
		m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: 1, Class: 1, Ttl: 1}, A: net.IPv4(192, 0, 2, 1)})
	}
	if o := q.IsEdns0(); o != nil {
		m.SetEdns0(1232, true)
		for _, e := range o.Option {
			if c, ok := e.(*dns.EDNS0_COOKIE); ok {
				m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: c.Cookie[:16] + "0123456789abcdef"})
			}
		}
	}
	return m
}

// lie is a reply to q that leads to the attacker.
func lie(q *dns.Msg) *dns.Msg {
	m := truth(q)
	m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: 1, Class: 1, Ttl: 86400}, A: net.IPv4(203, 0, 113, 66)}}
	m.Ns = []dns.RR{&dns.NS{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeNS, Class: 1, Ttl: 86400}, Ns: "evil."}}
	m.Extra = append(m.Extra, &dns.A{Hdr: dns.RR_Header{Name: "evil.", Rrtype: 1, Class: 1, Ttl: 86400}, A: net.IPv4(203, 0, 113, 66)})
	return m
}

func packed(m *dns.Msg) []byte {
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

func (f *forger) run() {
	buf := make([]byte, 4096)
	for {
		n, from, err := f.udp.ReadFromUDP(buf)
		if err != nil {
			return
		}
		q := new(dns.Msg)
		if q.Unpack(buf[:n]) != nil {
			continue
		}
		f.mu.Lock()
		f.ports, f.ids = append(f.ports, from.Port), append(f.ids, int(q.Id))
		f.mu.Unlock()
		m := truth(q)
		if f.forge != nil && q.Question[0].Name != "." {
			for _, b := range f.forge(q, m) {
				_, _ = f.udp.WriteToUDP(b, from)
				f.forged.Add(1)
			}
		}
		_, _ = f.udp.WriteToUDP(packed(m), from)
	}
}

// startForger starts a forger and a resolver that knows no other server.
func startForger(t *testing.T, forge func(q, reply *dns.Msg) [][]byte, more string) (*forger, string) {
	t.Helper()
	p, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	f := &forger{udp: p.(*net.UDPConn), forge: forge}
	f.tcp = &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) { _ = w.WriteMsg(truth(q)) })}
	var all sync.WaitGroup
	all.Go(f.run)
	all.Go(func() { _ = f.tcp.ActivateAndServe() })
	t.Cleanup(func() { f.udp.Close(); _ = f.tcp.Shutdown(); all.Wait() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	i, udp, _, err := test.CoreDNSServerAndPorts(fmt.Sprintf(".:%d {\n bind 127.0.0.1\n recurse {\n  stub . 127.0.0.1\n  authority_port %s\n  allow_servers 127.0.0.0/8\n  qname_minimisation off\n  family ipv4\n  fetches_per_server 0\n%s }\n}\n", loopback.Port(), port, more))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.ShutdownCallbacks(); test.CoreDNSServerStop(i) })
	return f, udp
}

// A forged reply is not believed, whatever it has right but one thing (RFC 5452 §9.1): 100,000 of them, of each kind.
func TestForgedReplies(t *testing.T) {
	const names, each = 400, 50
	for kind, forge := range map[string]func(q, reply *dns.Msg) [][]byte{
		"wrong id": func(q, _ *dns.Msg) (all [][]byte) {
			for range each {
				m := lie(q)
				for m.Id = q.Id; m.Id == q.Id; m.Id = uint16(rand.Uint32()) {
				}
				all = append(all, packed(m))
			}
			return all
		},
		"wrong case": func(q, _ *dns.Msg) (all [][]byte) {
			for range each {
				m := lie(q)
				name := []byte(m.Question[0].Name)
				name[rand.IntN(4)] ^= 0x20
				m.Question[0].Name = string(name)
				m.Answer[0].Header().Name = string(name)
				all = append(all, packed(m))
			}
			return all
		},
		"wrong question": func(q, _ *dns.Msg) (all [][]byte) {
			for i := range each {
				m := lie(q)
				m.Question[0].Name = fmt.Sprintf("x%d.example.org.", i)
				all = append(all, packed(m))
			}
			return all
		},
		"wrong cookie": func(q, _ *dns.Msg) (all [][]byte) {
			for range each {
				m := lie(q)
				m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: fmt.Sprintf("%016x0123456789abcdef", rand.Uint64())}}
				all = append(all, packed(m))
			}
			return all
		},
		"a query": func(q, _ *dns.Msg) (all [][]byte) {
			for range each {
				m := lie(q)
				m.Response = false
				all = append(all, packed(m))
			}
			return all
		},
	} {
		t.Run(kind, func(t *testing.T) {
			more := ""
			if kind == "wrong question" { // else it is found out by its letters, too
				more = "  case_randomization off\n"
			}
			// On a machine that is busy a resolver may find the server silent, and ask it over TCP from then on: the next
			// one does not know that.
			forged := int64(0)
			for range 20 {
				if forged += askBesideLies(t, forge, more, names); t.Failed() || forged >= names*each {
					break
				}
			}
			if forged < names*each {
				t.Errorf("only %d replies were forged", forged)
			}
		})
	}
}

// askBesideLies asks a resolver for as many names as it says, and reports how many replies were forged.
func askBesideLies(t *testing.T, forge func(q, reply *dns.Msg) [][]byte, more string, names int) (forged int64) {
	t.Helper()
	f, resolver := startForger(t, forge, more)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range names / 8 {
				name := fmt.Sprintf("abcdefgh%d-%d.example.org.", g, i)
				if a, err := Ask(resolver, name, dns.TypeA); err != nil || a.Rcode != 0 || a.Addr != "192.0.2.1" {
					t.Errorf("%s: %v %v", name, a, err)
				}
			}
		})
	}
	all.Wait()
	if a, err := Ask(resolver, "evil.", dns.TypeA); err != nil || a.Addr != "192.0.2.1" {
		t.Errorf("what stood beside the lies was kept: %v %v", a, err)
	}
	return f.forged.Load()
}

// Ports and ids tell nothing of the next ones: both are spread over their whole range, and neighbours are not alike.
func TestPortsAndIDs(t *testing.T) {
	f, resolver := startForger(t, nil, "")
	const n = 6000
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for i := range n / 16 {
				if _, err := Ask(resolver, fmt.Sprintf("n%d-%d.example.org.", g, i), dns.TypeA); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for what, values := range map[string][]int{"ports": f.ports, "ids": f.ids} {
		lo, hi := slices.Min(values), slices.Max(values)
		distinct := map[int]bool{}
		for _, v := range values {
			distinct[v] = true
		}
		if hi-lo < 1<<14 || len(distinct) < n*8/10 {
			t.Errorf("%s: from %d to %d, %d different ones of %d", what, lo, hi, len(distinct), len(values))
		}
		// sixteen classes of equal width: chi square with 15 degrees of freedom is above 60 once in 10^6 times or so
		var classes [16]float64
		for _, v := range values {
			classes[min((v-lo)*16/(hi-lo+1), 15)]++
		}
		mean, chi := float64(len(values))/16, 0.0
		for _, c := range classes {
			chi += (c - mean) * (c - mean) / mean
		}
		if chi > 60 {
			t.Errorf("%s: chi square %.0f of %v", what, chi, classes)
		}
		near := 0
		for i := 1; i < len(values); i++ {
			if math.Abs(float64(values[i]-values[i-1])) < 16 {
				near++
			}
		}
		if near > n/50 {
			t.Errorf("%s: %d of %d lie near the one before", what, near, len(values))
		}
	}
	if len(f.ports) < n {
		t.Errorf("%d queries", len(f.ports))
	}
}
