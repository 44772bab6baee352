package recurse

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// Who does not desire recursion is shown the servers of the closest zone that stood in a forward's replies; nothing is
// resolved by them.
func TestShown(t *testing.T) {
	s := defaults()
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver("shown")}
	r.guarded = func(_ string, a netip.Addr) bool { return a.IsPrivate() }
	shown := newShown(r, func([]byte) bool { return true })
	m := new(dns.Msg).SetQuestion("a.b.example.org.", dns.TypeA)
	m.Response = true
	for section, text := range map[*[]dns.RR]string{
		&m.Answer: "a.b.example.org. 60 IN A 192.0.2.9",
		&m.Ns: `example.org. 300 IN NS ns.example.org.
			example.org. 300 IN NS ns.example.net.
			other.org. 300 IN NS ns.example.org.
			example.org. 300 IN TXT "no server"`,
		&m.Extra: `ns.example.org. 200 IN A 192.0.2.1
			ns.example.org. 200 IN A 10.0.0.1
			ns.example.org. 200 IN AAAA 2001:db8::1
			ns.example.net. 7 IN A 192.0.2.2`,
	} {
		for line := range strings.Lines(text) {
			rr, err := dns.NewRR(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			*section = append(*section, rr)
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
	shown.Told(p)
	ns := "example.org. 200 NS ns.example.org. example.org. 200 NS ns.example.net. ns.example.org. 200 A 192.0.2.1 ns.example.org. 200 AAAA 2001:db8::1"
	for _, c := range []struct {
		name  string
		typ   uint16
		class uint16
		want  string
	}{
		{"x.Example.org.", dns.TypeA, dns.ClassINET, ns}, {"example.org.", dns.TypeNS, dns.ClassINET, ns}, {"x.example.org.", dns.TypeDS, dns.ClassINET, ns},
		{"example.org.", dns.TypeDS, dns.ClassINET, ""}, {"www.other.org.", dns.TypeA, dns.ClassINET, ""}, {"org.", dns.TypeA, dns.ClassINET, ""},
		{"x.example.org.", dns.TypeA, dns.ClassCHAOS, ""},
	} {
		q := new(dns.Msg).SetQuestion(c.name, c.typ)
		q.Question[0].Qclass = c.class
		w := dnstest.NewRecorder(&test.ResponseWriter{})
		a, err := plugin.NewWireAdapter(w, q)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if shown.Refer(&a.Reply, &a.Query) {
			if _, err := a.Write(); err != nil {
				t.Fatal(err)
			}
			m := w.Msg
			for _, rr := range append(m.Ns, m.Extra...) {
				f := strings.Fields(rr.String())
				got += fmt.Sprint(" ", f[0], " ", f[1], " ", f[3], " ", f[4])
			}
			if m.Authoritative || !m.RecursionAvailable || len(m.Answer) > 0 || m.Rcode != dns.RcodeSuccess {
				t.Errorf("%+v:\n%v", c, m)
			}
		}
		if strings.TrimSpace(got) != c.want {
			t.Errorf("%+v: %s", c, got)
		}
		a.Free()
	}
	if d := r.conf.Stores.Delegations.Closest(rrset.MustName("example.org."), r.now()); d != nil {
		t.Errorf("names are resolved by %v", d)
	}
}

// What a zone above a forward's own has for servers is not its upstreams' to tell, transfers are the upstreams', and what is
// flushed is shown no more.
func TestShownOfOwnNames(t *testing.T) {
	s := defaults()
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver("shown of own names")}
	corp := rrset.MustName("corp.")
	shown := newShown(r, func(name []byte) bool { return rrset.Below(string(name), corp) })
	r.shown = append(r.shown, shown)
	tell := func(zone string) {
		shown.Told(&rrset.Message{
			Name:    rrset.MustName("www.a.corp."),
			Section: [3][]*rrset.Set{rrset.Authority: {rrset.New(rrset.MustName(zone), dns.TypeNS, 300, rrset.MustName("ns.example."))}},
		})
	}
	refers := func(typ uint16) bool {
		a, err := plugin.NewWireAdapter(&test.ResponseWriter{}, new(dns.Msg).SetQuestion("x.a.corp.", typ))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Free()
		return shown.Refer(&a.Reply, &a.Query)
	}
	if tell("."); refers(dns.TypeA) {
		t.Error("clients are referred to servers above the forward's zone")
	}
	if tell("corp."); !refers(dns.TypeA) || !refers(dns.TypeANY) || refers(dns.TypeAXFR) || refers(dns.TypeIXFR) || refers(dns.TypeTKEY) {
		t.Error("not all, or transfers, are referred to the forward's zone")
	}
	r.CacheFlush(status.Match{Name: []byte(corp), Type: dns.TypeA})
	if !refers(dns.TypeA) {
		t.Error("another type was flushed")
	}
	if r.CacheFlush(status.Match{Name: []byte(corp), Below: true}); refers(dns.TypeA) {
		t.Error("clients are referred to what was flushed")
	}
}
