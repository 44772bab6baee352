package recurse

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// script is a server of the root and all below it but what it refers to others: it has the records of a zone file, and
// keeps what it was asked for.
type script struct {
	at  netip.AddrPort
	rrs []dns.RR

	mu    sync.Mutex
	asked []string
}

func startScript(t *testing.T, text string) *script {
	t.Helper()
	p, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s := &script{at: netip.MustParseAddrPort(p.LocalAddr().String())}
	z := dns.NewZoneParser(strings.NewReader(text), ".", "")
	for rr, ok := z.Next(); ok; rr, ok = z.Next() {
		s.rrs = append(s.rrs, rr)
	}
	if z.Err() != nil {
		t.Fatal(z.Err())
	}
	server := &dns.Server{PacketConn: p, Handler: s}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	return s
}

// ServeDNS implements dns.Handler.
func (s *script) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	name, typ := strings.ToLower(q.Question[0].Name), q.Question[0].Qtype
	s.mu.Lock()
	s.asked = append(s.asked, name)
	s.mu.Unlock()
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	for _, rr := range s.rrs {
		switch h := rr.Header(); {
		case h.Name == name && (h.Rrtype == typ || h.Rrtype == dns.TypeCNAME),
			h.Rrtype == dns.TypeDNAME && dns.IsSubDomain(h.Name, name) && h.Name != name:
			m.Answer = append(m.Answer, rr)
		case h.Rrtype == dns.TypeNS && h.Name != "." && dns.IsSubDomain(h.Name, name):
			m.Ns, m.Authoritative = []dns.RR{rr}, false
			_ = w.WriteMsg(m)
			return
		case h.Rrtype == dns.TypeSOA && len(m.Answer) == 0:
			m.Ns = append(m.Ns, rr)
		}
	}
	if len(m.Answer) > 0 {
		m.Ns = nil
	} else {
		m.Rcode = dns.RcodeNameError
	}
	_ = w.WriteMsg(m)
}

// resolver is one whose root is s.
func (s *script) resolver(t *testing.T, edit func(*settings)) *resolver {
	return silent(t, func(c *settings) {
		clear(c.stubs)
		c.port = int(s.at.Port())
		c.hints = &store.Delegation{Zone: rrset.Root, Fixed: true, Hosts: []store.Host{{Name: rrset.MustName("a."), Addrs: []netip.Addr{s.at.Addr()}}}}
		c.timeout = 10 * time.Second
		edit(c)
	})
}

// Names that stay inside do so where an alias leads to them, too, and are answered as if they were asked for.
func TestAliasesToSpecialNames(t *testing.T) {
	s := startScript(t, `$TTL 60
@ SOA a. b. 1 60 60 60 60
@ NS a.
a. A 127.0.0.1
printer.example.org. CNAME printer.local.
hop.example.org. CNAME printer.example.org.
me.example.org. CNAME localhost.
apex.example.org. CNAME home.arpa.
reverse.example.org. DNAME 10.in-addr.arpa.
www.example.org. CNAME www.example.net.
www.example.net. A 192.0.2.1
stub.example.org. CNAME www.corp.home.arpa.
www.corp.home.arpa. A 192.0.2.2
example.com. NS ns.local.
`)
	r := s.resolver(t, func(c *settings) { c.notSpecial = []string{rrset.MustName("corp.home.arpa.")} })
	for range 2 { // the second time what is kept leads there
		for name, want := range map[string]string{
			"printer.example.org.":       "NXDOMAIN CNAME local.",
			"hop.example.org.":           "NXDOMAIN CNAME CNAME local.",
			"me.example.org.":            "NOERROR CNAME A",
			"apex.example.org.":          "NOERROR CNAME home.arpa.",
			"1.0.0.reverse.example.org.": "NXDOMAIN DNAME CNAME 10.in-addr.arpa.",
			"www.example.org.":           "NOERROR CNAME A",
			"www.example.com.":           "SERVFAIL",
			"stub.example.org.":          "NOERROR CNAME A",
		} {
			q := queryFrom(t, "192.0.2.1", name)
			j, _ := r.beginFor(q, nil, nil, unlooked)
			if err := j.wait(context.Background()); err != nil {
				t.Fatal(err)
			}
			got := dns.RcodeToString[j.result.Rcode]
			for _, set := range j.result.Answer {
				got += " " + dns.TypeToString[set.Type]
			}
			for _, set := range j.result.Authority {
				got += " " + rrset.Text(set.Name)
			}
			if got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.asked {
		for _, zone := range []string{"local.", "localhost.", "home.arpa.", "10.in-addr.arpa."} {
			if dns.IsSubDomain(zone, name) && !dns.IsSubDomain("corp.home.arpa.", name) {
				t.Errorf("%s was asked for", name)
			}
		}
	}
}

// Who asks for ANY is told one RRset that is there (RFC 8482), and no denial of what there is.
func TestAnyOfSpecialNames(t *testing.T) {
	s := defaults()
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver("any")}
	r.specials = newSpecials([]string{rrset.MustName("corp.home.arpa.")})
	for name, want := range map[string]string{
		"localhost.": "NOERROR A", "a.localhost.": "NOERROR A", "home.arpa.": "NOERROR SOA", "x.onion.": "NXDOMAIN", "1.0.0.10.in-addr.arpa.": "NXDOMAIN",
	} {
		w := dnstest.NewRecorder(&test.ResponseWriter{})
		_, _ = r.ServeDNS(context.Background(), w, new(dns.Msg).SetQuestion(name, dns.TypeANY))
		got := dns.RcodeToString[w.Msg.Rcode]
		for _, rr := range w.Msg.Answer {
			got += " " + dns.TypeToString[rr.Header().Rrtype]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if e := r.specials.entry(rrset.MustName("localhost."), dns.TypeANY); e.Set == nil || e.Set.Type != dns.TypeA {
		t.Errorf("an alias leads to %+v", e)
	}
}

// Whether a zone below arpa is signed is its parent's to tell (RFC 4035 §3.1.4.1): clients that validate see that it is not
// (RFC 8375 §4, RFC 6303 §6). Of top-level names, and of names in the zones, nobody is asked.
func TestDSOfSpecialNames(t *testing.T) {
	s := startScript(t, "$TTL 60\n@ SOA a. b. 1 60 60 60 60\n@ NS a.\na. A 127.0.0.1\nalias.example. CNAME 16.172.in-addr.arpa.\n")
	corp := rrset.MustName("corp.home.arpa.")
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver(t, func(c *settings) { c.notSpecial = []string{corp} })}
	for name, want := range map[string]string{
		"10.in-addr.arpa.": ".", "home.arpa.": ".", "alias.example.": ".",
		"x.10.in-addr.arpa.": "10.in-addr.arpa.", "corp.home.arpa.": "home.arpa.", "local.": "local.", "localhost.": "localhost.",
	} {
		w := dnstest.NewRecorder(&test.ResponseWriter{})
		_, _ = r.ServeDNS(context.Background(), w, new(dns.Msg).SetQuestion(name, dns.TypeDS))
		if len(w.Msg.Ns) != 1 || w.Msg.Ns[0].Header().Name != want {
			t.Errorf("%s: the denial is not of %s\n%s", name, want, w.Msg)
		}
	}
}
