package lab

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// tailor is a server of a zone that tells each /16 another address, and what it was shown.
type tailor struct {
	mu    sync.Mutex
	shown []string
	mood  string // "odd": it answers for another network; "refuses": it does not want to be told
}

// asked is what it was shown since the last call.
func (s *tailor) asked() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, s.shown = s.shown, nil
	return all
}

func subnetIn(m *dns.Msg) *dns.EDNS0_SUBNET {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_SUBNET); ok {
				return e
			}
		}
	}
	return nil
}

func (s *tailor) reply(q *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	m.SetEdns0(1232, true)
	name, e := strings.ToLower(q.Question[0].Name), subnetIn(q)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e == nil {
		s.shown = append(s.shown, name)
	} else {
		s.shown = append(s.shown, fmt.Sprintf("%s %s/%d", name, e.Address, e.SourceNetmask))
	}
	third := byte(0)
	if e != nil {
		own := *e
		own.SourceScope = 16
		if name == "all.ecs." {
			own.SourceScope = 0
		}
		switch s.mood {
		case "odd":
			own.Address = net.IPv4(192, 0, 2, 0)
		case "refuses":
			m.Rcode = dns.RcodeRefused
			return m
		}
		third = e.Address.To4()[1]
		m.IsEdns0().Option = append(m.IsEdns0().Option, &own)
	}
	switch {
	case q.Question[0].Qtype != dns.TypeA:
		m.Ns = append(m.Ns, record("ecs. 300 IN SOA a. b. 1 2 3 4 300"))
	case name == "alias.ecs.":
		m.Answer = append(m.Answer, record("alias.ecs. 300 IN CNAME www.other."))
	default:
		m.Answer = append(m.Answer, record(fmt.Sprintf("%s 300 IN A 10.0.%d.1", name, third)))
	}
	return m
}

// A client's own network is shown to the servers of zones of ecs, with the full question only, and to nobody else;
// what they tell is for that network, also out of the cache, and the client is told for which (RFC 7871).
func TestClientSubnets(t *testing.T) {
	zone, other := &tailor{}, &tailor{}
	for _, above := range []string{"", " cache\n", " validator {\n  nta .\n }\n", " cache\n validator {\n  nta .\n }\n"} {
		ours := serve(t, 0, above+fmt.Sprintf(" recurse {\n  stub ecs %s\n  stub other %s\n  ecs ecs\n  case_randomization off\n  allow_servers 127.0.0.0/8\n }",
			reply(t, zone.reply), reply(t, other.reply)))
		for _, c := range []struct {
			name, subnet, addr string
			scope              int // -1: no option
			zone, other        string
		}{
			{"www.ecs.", "", "10.0.0.1", -1, "[www.ecs.]", "[]"},
			{"www.ecs.", "198.51.100.0/24", "10.0.51.1", 16, "[www.ecs. 198.51.100.0/24]", "[]"},
			{"www.ecs.", "192.168.7.0/23", "10.0.168.1", 16, "[www.ecs. 192.168.6.0/23]", "[]"},
			{"www.ecs.", "", "10.0.0.1", -1, "[]", "[]"},
			{"www.ecs.", "198.51.101.0/24", "10.0.51.1", 16, "kept [www.ecs. 198.51.101.0/24]", "[]"},
			{"www.ecs.", "198.52.100.0/24", "10.0.52.1", 16, "[www.ecs. 198.52.100.0/24]", "[]"},
			{"www.ecs.", "0.0.0.0/0", "10.0.0.1", -1, "[]", "[]"}, // it does not want it told
			{"deep.er.ecs.", "198.51.100.0/24", "10.0.51.1", 16, "[er.ecs. deep.er.ecs. 198.51.100.0/24]", "[]"},
			{"www.other.", "198.51.100.0/24", "10.0.0.1", 0, "[]", "[www.other.]"},
			{"alias.ecs.", "198.51.100.0/24", "10.0.0.1", 16, "[alias.ecs. 198.51.100.0/24]", "[]"},
		} {
			q := new(dns.Msg).SetQuestion(c.name, dns.TypeA)
			q.SetEdns0(1232, false)
			if c.subnet != "" {
				p := netip.MustParsePrefix(c.subnet)
				q.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: uint8(p.Bits()), Address: p.Masked().Addr().AsSlice()}}
			}
			m, err := dns.Exchange(q, ours)
			if err != nil {
				t.Fatal(err)
			}
			addr, scope := "", -1
			for _, rr := range m.Answer {
				if a, ok := rr.(*dns.A); ok {
					addr = a.A.String()
				}
			}
			if e := subnetIn(m); e != nil {
				scope = int(e.SourceScope)
			}
			if asks, kept := strings.CutPrefix(c.zone, "kept "); kept { // for who has a cache above
				if c.zone = asks; strings.Contains(above, "cache") {
					c.zone = "[]"
				}
			}
			// A busy machine may let a query wait until it is sent again.
			if z, o := fmt.Sprint(slices.Compact(zone.asked())), fmt.Sprint(slices.Compact(other.asked())); addr != c.addr || scope != c.scope || z != c.zone || o != c.other {
				t.Errorf("%q %s %s: %s, scope %d, after %s and %s; want %s, scope %d, after %s and %s",
					above, c.name, c.subnet, addr, scope, z, o, c.addr, c.scope, c.zone, c.other)
			}
		}
	}
}

// A reply for another network is none, and a server that refuses to be told is asked without (RFC 7871 §7.1.3, §7.3).
func TestOddClientSubnets(t *testing.T) {
	for mood, want := range map[string]string{"odd": "2  []", "refuses": "0 10.0.0.1 [0]"} {
		zone := &tailor{mood: mood}
		ours := serve(t, 0, fmt.Sprintf(" recurse {\n  stub ecs %s\n  ecs ecs\n  allow_servers 127.0.0.0/8\n }", reply(t, zone.reply)))
		q := new(dns.Msg).SetQuestion("www.ecs.", dns.TypeA)
		q.SetEdns0(1232, false)
		q.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: net.IPv4(198, 51, 100, 0)}}
		m, err := dns.Exchange(q, ours)
		if err != nil {
			t.Fatal(err)
		}
		addr, scopes := "", []int{}
		for _, rr := range m.Answer {
			addr = rr.(*dns.A).A.String()
		}
		if e := subnetIn(m); e != nil {
			scopes = append(scopes, int(e.SourceScope))
		}
		if got := fmt.Sprint(m.Rcode, " ", addr, " ", scopes); got != want {
			t.Errorf("%s: %s, want %s", mood, got, want)
		}
	}
}
