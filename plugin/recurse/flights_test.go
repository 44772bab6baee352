package recurse

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// slow is a server of example.org. that has any address record, after a while; never if that is 0. It counts questions.
type slow struct {
	after time.Duration
	at    netip.AddrPort

	mu   sync.Mutex
	seen map[string]int
}

func startSlow(t *testing.T, after time.Duration) *slow {
	t.Helper()
	p, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s := &slow{after: after, at: netip.MustParseAddrPort(p.LocalAddr().String()), seen: map[string]int{}}
	server := &dns.Server{PacketConn: p, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		name := strings.ToLower(q.Question[0].Name)
		s.mu.Lock()
		s.seen[name]++
		s.mu.Unlock()
		if after == 0 {
			return
		}
		time.Sleep(after)
		m := new(dns.Msg).SetReply(q)
		m.Authoritative = true
		m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: 1, Ttl: 60}, A: net.IPv4(192, 0, 2, 1)})
		_ = w.WriteMsg(m)
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	return s
}

// resolver is one that asks s for example.org.
func (s *slow) resolver(t *testing.T, edit func(*settings)) *resolver {
	zone := rrset.MustName("example.org.")
	return silent(t, func(c *settings) {
		c.stubs[zone] = &store.Delegation{Zone: zone, Fixed: true, Hosts: []store.Host{{Addrs: []netip.Addr{s.at.Addr()}, Port: s.at.Port()}}}
		edit(c)
	})
}

func (s *slow) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[name]
}

// What many want to know at one time is asked once: the same name, and the steps on the way to others (R23).
func TestAskedOnce(t *testing.T) {
	s := startSlow(t, 100*time.Millisecond)
	r := s.resolver(t, func(c *settings) { c.minimise, c.timeout = iterate.Relaxed, 5*time.Second })
	var all sync.WaitGroup
	for i := range 50 {
		for _, name := range []string{"www.example.org.", fmt.Sprintf("n%d.below.example.org.", i)} {
			all.Go(func() {
				j, _ := r.beginFor(queryFrom(t, fmt.Sprintf("192.0.2.%d", i), name), nil, nil, unlooked)
				if err := j.wait(context.Background()); err != nil || j.result.Rcode != 0 || len(j.result.Answer) != 1 {
					t.Errorf("%s: %+v %v", name, j.result, err)
				}
			})
		}
	}
	all.Wait()
	for _, name := range []string{"www.example.org.", "below.example.org.", "n7.below.example.org."} {
		if n := s.count(name); n != 1 {
			t.Errorf("%s was asked %d times", name, n)
		}
	}
}

// Who doubts what a server tells does not join others who ask that one the same just now: another server is asked.
func TestDoubtersDoNotJoin(t *testing.T) {
	both := []*slow{startSlow(t, 200*time.Millisecond), startSlow(t, 200*time.Millisecond)}
	zone, name := rrset.MustName("example.org."), rrset.MustName("www.example.org.")
	r := silent(t, func(c *settings) {
		c.timeout = 5 * time.Second
		c.stubs[zone] = &store.Delegation{Zone: zone, Fixed: true}
		for _, s := range both {
			c.stubs[zone].Hosts = append(c.stubs[zone].Hosts, store.Host{Addrs: []netip.Addr{s.at.Addr()}, Port: s.at.Port()})
		}
	})
	q := queryFrom(t, "192.0.2.1", "www.example.org.")
	first, _ := r.beginFor(q, nil, nil, unlooked)
	asked := 0
	eventually.Holds(t, "a server is asked", func() bool {
		asked = both[1].count("www.example.org.")
		return asked+both[0].count("www.example.org.") > 0
	})
	source := new(advice.Source)
	source.Add(advice.Teller{Zone: zone, Server: both[asked].at, Name: name})
	source.Doubt("")
	second, _ := r.beginFor(q, nil, source, unlooked)
	for _, j := range []*job{first, second} {
		if err := j.wait(context.Background()); err != nil || len(j.result.Answer) != 1 {
			t.Errorf("%+v %v", j.result, err)
		}
	}
	if by := source.Of(name).Server; by != both[1-asked].at {
		t.Errorf("told by %v, who is doubted", by)
	}
}

// No more queries are under way for a zone than fetches_per_zone, nor to a server than fetches_per_server (R23). Names that
// have failed for that are tried again a second later.
func TestFetches(t *testing.T) {
	for what, edit := range map[string]func(*settings){
		"zone":   func(c *settings) { c.perZone, c.timeout = 20, 300*time.Millisecond },
		"server": func(c *settings) { c.perServer, c.timeout = 20, 300*time.Millisecond },
	} {
		t.Run(what, func(t *testing.T) {
			s := startSlow(t, 0)
			r := s.resolver(t, edit)
			failed := 0
			for i := range 100 {
				j, _ := r.beginFor(queryFrom(t, "192.0.2.1", fmt.Sprintf("n%d.example.org.", i)), nil, nil, unlooked)
				time.Sleep(time.Millisecond)
				if j.Over() {
					failed++
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.seen) != 20 || failed < 70 {
				t.Errorf("the server saw %d names, want 20; %d of 100 failed at once", len(s.seen), failed)
			}
			now := r.now()
			if f, ok := r.conf.Stores.Failures.Get(rrset.MustName("n99.example.org."), dns.TypeA, now); !ok || f.Until > now+store.Second {
				t.Errorf("a name for which nobody was asked: kept %v, %+v, now %d", ok, f, now)
			}
		})
	}
}
