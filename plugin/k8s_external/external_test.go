package external

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/plugin/transfer"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// cluster is an Externaler of the test.
type cluster struct {
	serial uint32
	unread bool // not all of it has been read yet
}

func (c *cluster) Ready() bool { return !c.unread }

func service(host string, port int, labels string) msg.Service {
	return msg.Service{Host: host, Port: port, TTL: 99, Key: "/c/org/example/" + labels}
}

var services = map[string][]msg.Service{
	"cart.shop.example.org.":            {service("192.0.2.10", 80, "shop/cart"), service("192.0.2.10", 443, "shop/cart"), service("2001:db8::10", 80, "shop/cart")},
	"_http._tcp.cart.shop.example.org.": {service("192.0.2.10", 80, "shop/cart")},
	"mixed.shop.example.org.":           {service("192.0.2.11", 80, "shop/mixed"), service("lb.example.net", 80, "shop/mixed")},
	"near.shop.example.org.":            {service("lb.dyn.example.org", 80, "shop/near")},
	"far.shop.example.org.":             {service("near.shop.example.org", 80, "shop/far")},
	"round.shop.example.org.":           {service("trip.shop.example.org", 80, "shop/round")},
	"trip.shop.example.org.":            {service("round.shop.example.org", 80, "shop/trip")},
	"named.shop.example.org.":           {service("lb.example.net", 80, "shop/named"), service("lb2.example.net", 80, "shop/named")},
}

func (c *cluster) External(state request.Request, headless bool) ([]msg.Service, int) {
	if s := services[state.Name()]; s != nil {
		return s, dns.RcodeSuccess
	}
	switch {
	case c.unread:
		return nil, dns.RcodeServerFailure
	case state.Name() == "shop.example.org.":
		return nil, dns.RcodeSuccess
	case headless && state.Name() == "db-0.db.shop.example.org.":
		return []msg.Service{service("10.0.0.1", 5432, "shop/db/db-0")}, dns.RcodeSuccess
	}
	return nil, dns.RcodeNameError
}

func (c *cluster) ExternalAddress(state request.Request, _ bool) []dns.RR {
	return []dns.RR{test.A(state.QName() + " 77 IN A 192.0.2.53"), test.AAAA(state.QName() + " 77 IN AAAA 2001:db8::53")}
}

func (c *cluster) ExternalServices(_ string, headless bool) (all []msg.Service, ends map[string][]msg.Service) {
	for _, name := range []string{"cart.shop.example.org.", "named.shop.example.org."} {
		all = append(all, services[name]...)
	}
	if headless {
		ends = map[string][]msg.Service{
			"db.shop.example.org":   {service("10.0.0.1", 5432, "shop/db/db-0"), service("10.0.0.1", 5432, "shop/db/db-0")},
			"cart.shop.example.org": {service("10.0.0.2", 8443, "shop/cart/cart-0")}, // headless, and reached by an external address
		}
	}
	return all, ends
}

func (c *cluster) ExternalSerial(string) uint32 { return c.serial }

func (c *cluster) ExternalReverse(ip string) ([]msg.Service, error) {
	if ip == "192.0.2.10" {
		return []msg.Service{{Host: "cart.shop"}, {Host: "cart.shop"}}, nil
	}
	return nil, errors.New("none")
}

func (c *cluster) ExternalSpan(p netip.Prefix) bool {
	return p.Contains(netip.MustParseAddr("192.0.2.10"))
}

func external() *External {
	e := New()
	e.Zones, e.source = []string{"example.org.", "in-addr.arpa."}, &cluster{serial: 17}
	e.Next = test.NextHandler(dns.RcodeRefused, errors.New("next"))
	return e
}

// text is a reply in one line.
func text(m *dns.Msg) string {
	var all []string
	for _, rr := range append(slices.Clone(m.Answer), m.Extra...) {
		all = append(all, strings.Join(strings.Fields(rr.String()), " "))
	}
	slices.Sort(all)
	for _, rr := range m.Ns {
		all = append(all, "+"+dns.TypeToString[rr.Header().Rrtype])
	}
	return dns.RcodeToString[m.Rcode] + " " + strings.Join(all, "; ")
}

// An update is for who serves the zone from its own data.
func TestUpdate(t *testing.T) {
	e := external()
	e.Next = test.NextHandler(dns.RcodeSuccess, nil)
	for _, name := range []string{"example.org.", "dns.example.org.", "cart.shop.example.org."} {
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		if rc, err := e.ServeDNS(t.Context(), rec, new(dns.Msg).SetUpdate(name)); rc != dns.RcodeSuccess || err != nil || rec.Msg != nil {
			t.Errorf("%s: %d, %v, and it answers %v", name, rc, err, rec.Msg)
		}
	}
}

func TestServeDNS(t *testing.T) {
	const soa = "example.org. 5 IN SOA ns1.dns.example.org. hostmaster.dns.example.org. 17 7200 1800 86400 5"
	for _, tc := range []struct {
		name     string
		typ      uint16
		headless bool
		fall     bool
		want     string
	}{
		{name: "example.org.", typ: dns.TypeSOA, want: "NOERROR " + soa},
		{name: "example.org.", typ: dns.TypeNS, want: "NOERROR example.org. 5 IN NS ns1.dns.example.org.; ns1.dns.example.org. 5 IN A 192.0.2.53; ns1.dns.example.org. 5 IN AAAA 2001:db8::53"},
		{name: "example.org.", typ: dns.TypeA, want: "NOERROR +SOA"},
		{name: "dns.example.org.", typ: dns.TypeA, want: "NOERROR +SOA"},
		{name: "NS1.dns.example.org.", typ: dns.TypeA, want: "NOERROR NS1.dns.example.org. 5 IN A 192.0.2.53"},
		{name: "ns1.dns.example.org.", typ: dns.TypeTXT, want: "NOERROR +SOA"},
		{name: "ns2.dns.example.org.", typ: dns.TypeA, want: "NXDOMAIN +SOA"},
		{name: "a.ns1.dns.example.org.", typ: dns.TypeA, want: "NXDOMAIN +SOA"},
		{name: "cart.shop.example.org.", typ: dns.TypeA, want: "NOERROR cart.shop.example.org. 5 IN A 192.0.2.10"},
		{name: "cart.shop.example.org.", typ: dns.TypeAAAA, want: "NOERROR cart.shop.example.org. 5 IN AAAA 2001:db8::10"},
		{name: "cart.shop.example.org.", typ: dns.TypeMX, want: "NOERROR +SOA"},
		{name: "_http._tcp.cart.shop.example.org.", typ: dns.TypeSRV, want: "NOERROR _http._tcp.cart.shop.example.org. 5 IN SRV 0 100 80 cart.shop.example.org.; cart.shop.example.org. 5 IN A 192.0.2.10"},
		{name: "mixed.shop.example.org.", typ: dns.TypeA, want: "NOERROR mixed.shop.example.org. 5 IN A 192.0.2.11"},
		{name: "shop.example.org.", typ: dns.TypeA, want: "NOERROR +SOA"},
		{name: "nope.shop.example.org.", typ: dns.TypeA, want: "NXDOMAIN +SOA"},
		{name: "nope.shop.example.org.", typ: dns.TypeA, fall: true, want: "next"},
		{name: "shop.example.org.", typ: dns.TypeA, fall: true, want: "NOERROR +SOA"},
		{name: "db-0.db.shop.example.org.", typ: dns.TypeA, want: "NXDOMAIN +SOA"},
		{name: "db-0.db.shop.example.org.", typ: dns.TypeA, headless: true, want: "NOERROR db-0.db.shop.example.org. 5 IN A 10.0.0.1"},
		{name: "10.2.0.192.in-addr.arpa.", typ: dns.TypePTR, want: "NOERROR 10.2.0.192.in-addr.arpa. 5 IN PTR cart.shop.example.org."},
		{name: "10.2.0.192.in-addr.arpa.", typ: dns.TypeTXT, want: "NOERROR +SOA"},
		{name: "10.2.0.192.in-addr.arpa.", typ: dns.TypeA, fall: true, want: "NOERROR +SOA"},
		{name: "11.2.0.192.in-addr.arpa.", typ: dns.TypePTR, want: "NXDOMAIN +SOA"},
		{name: "2.0.192.in-addr.arpa.", typ: dns.TypePTR, fall: true, want: "NOERROR +SOA"},
		{name: "192.in-addr.arpa.", typ: dns.TypeA, want: "NOERROR +SOA"},
		{name: "3.0.192.in-addr.arpa.", typ: dns.TypePTR, want: "NXDOMAIN +SOA"},
		{name: "www.example.com.", typ: dns.TypeA, want: "next"},
	} {
		e := external()
		e.headless = tc.headless
		if tc.fall {
			e.Fall.SetZonesFromArgs(nil)
		}
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		_, err := e.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion(tc.name, tc.typ))
		got := "next"
		if rec.Msg != nil {
			got = text(rec.Msg)
		}
		if got != tc.want || (err != nil) != (tc.want == "next") {
			t.Errorf("%s %s headless %v fallthrough %v: %v\n%s\nwant\n%s", tc.name, dns.TypeToString[tc.typ], tc.headless, tc.fall, err, got, tc.want)
		}
	}
}

// Names of the apex are found however the Corefile writes it.
func TestApexInCapitals(t *testing.T) {
	e := external()
	if err := directive.Parse(caddy.NewTestController("dns", "k8s_external example.org {\napex DNS\n}"), e); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"dns.example.org.":     "NOERROR +SOA",
		"ns1.DNS.example.org.": "NOERROR ns1.DNS.example.org. 5 IN A 192.0.2.53",
	} {
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		if _, err := e.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion(name, dns.TypeA)); err != nil || text(rec.Msg) != want {
			t.Errorf("%s: %v, %s, want %s", name, err, text(rec.Msg), want)
		}
	}
}

func TestTransfer(t *testing.T) {
	e := external()
	e.headless = true
	if _, err := e.Transfer("shop.example.org.", 0); !errors.Is(err, transfer.ErrNotAuthoritative) {
		t.Error(err)
	}
	collect := func(zone string, serial uint32) (all []string) {
		t.Helper()
		ch, err := e.Transfer(zone, serial)
		if err != nil {
			t.Fatal(err)
		}
		for rrs := range ch {
			for _, rr := range rrs {
				all = append(all, strings.Join(strings.Fields(rr.String()), " "))
			}
		}
		return all
	}
	if got := collect("example.org.", 17); len(got) != 1 {
		t.Errorf("a client that has the zone: %q", got)
	}
	got := collect("example.org.", 0)
	if len(got) < 3 || got[0] != got[len(got)-1] || !strings.Contains(got[0], "SOA") {
		t.Fatalf("%q", got)
	}
	for _, want := range []string{
		"example.org. 5 IN NS ns1.dns.example.org.", "ns1.dns.example.org. 5 IN A 192.0.2.53",
		"cart.shop.example.org. 5 IN A 192.0.2.10", "cart.shop.example.org. 5 IN SRV 0 100 443 cart.shop.example.org.",
		"named.shop.example.org. 5 IN CNAME lb.example.net.",
		"db.shop.example.org. 5 IN A 10.0.0.1", "db-0.db.shop.example.org. 5 IN A 10.0.0.1", "db.shop.example.org. 5 IN SRV 0 100 5432 db-0.db.shop.example.org.",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no %q in %q", want, got)
		}
	}
	for _, rr := range got {
		if strings.HasPrefix(rr, "named.shop.") && !strings.Contains(rr, " CNAME ") {
			t.Errorf("beside an alias, for which secondaries refuse the zone: %q", rr)
		}
	}
	if !slices.Contains(got, "cart-0.cart.shop.example.org. 5 IN A 10.0.0.2") {
		t.Errorf("the endpoint of a service with an external address is not in %q", got)
	}
	for _, not := range []string{"cart.shop.example.org. 5 IN A 10.0.0.2", "cart.shop.example.org. 5 IN SRV 0 100 8443 cart-0.cart.shop.example.org."} {
		if slices.Contains(got, not) {
			t.Errorf("%q, where queries get the external address only", not)
		}
	}
	slices.Sort(got[1:])
	if len(slices.Compact(got[1:])) != len(got)-1 {
		t.Errorf("a record stands twice: %q", got)
	}
	// A reverse zone has what PTR queries are answered with.
	got = collect("in-addr.arpa.", 0)
	if got = got[4 : len(got)-1]; !slices.Equal(got, []string{"10.2.0.192.in-addr.arpa. 5 IN PTR cart.shop.example.org."}) {
		t.Errorf("the reverse zone has %q", got)
	}
}

// Before all services have been read, nobody is told that one does not exist, nor asks another plugin, nor gets a zone
// without it.
func TestUnread(t *testing.T) {
	e := external()
	e.source.(*cluster).unread = true
	e.Fall.SetZonesFromArgs(nil)
	e.Next = test.NextHandler(dns.RcodeRefused, errors.New("asked"))
	for name, typ := range map[string]uint16{"late.shop.example.org.": dns.TypeA, "10.2.0.192.in-addr.arpa.": dns.TypePTR, "11.2.0.192.in-addr.arpa.": dns.TypePTR} {
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		_, err := e.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion(name, typ))
		known := strings.HasPrefix(name, "10.")
		if err != nil || rec.Msg == nil || (rec.Msg.Rcode == dns.RcodeServerFailure) == known {
			t.Errorf("%s: %v, %v", name, rec.Msg, err)
		}
	}
	if _, err := e.Transfer("example.org.", 0); !errors.Is(err, errNotRead) {
		t.Errorf("transfer: %v", err)
	}
}

func TestServeWire(t *testing.T) {
	e := external()
	e.Next = nil
	for name, want := range map[string]wire.Outcome{"cart.shop.example.org.": wire.Unpack, "www.example.com.": wire.Done} {
		b, _ := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
		var q wire.Query
		var w wire.Reply
		w.Reset(nil)
		if !q.Parse(b) || e.ServeWire(context.Background(), &w, &q) != want {
			t.Errorf("%s: not %v", name, want)
		}
	}
}

func TestReadme(t *testing.T) {
	text, err := corefile.ReadmeSyntax("README.md")
	if err != nil || text != directive.Doc().Syntax {
		t.Errorf("%v: the README has\n%s\nwant\n%s", err, text, directive.Doc().Syntax)
	}
}

func TestDirective(t *testing.T) {
	e := New()
	if err := directive.Parse(caddy.NewTestController("dns", "k8s_external example.org {\napex testdns.\nttl 60\nheadless\nfallthrough a.example.org\n}"), e); err != nil {
		t.Fatal(err)
	}
	if e.Zones[0] != "example.org." || e.apex != "testdns" || e.ttl != 60 || !e.headless || !e.Fall.Through("b.a.example.org.") {
		t.Errorf("%+v", e)
	}
	e = New()
	if err := directive.Parse(caddy.NewTestController("dns", "k8s_external ä.org"), e); err != nil || e.Zones[0] != `\195\164.org.` { // as queries have it
		t.Errorf("%q, %v", e.Zones, err)
	}
	for text, want := range map[string]string{
		"k8s_external {\nttl 3601\n}":    "ttl must be in range [0, 3600]: 3601",
		"k8s_external {\nttl x\n}":       "strconv.Atoi",
		"k8s_external {\nheadless on\n}": "usage: headless",
		"k8s_external {\napex\n}":        "usage: apex APEX",

		"k8s_external example.org {\napex a..b\n}":                            `apex "a..b" makes no name below example.org.`,
		"k8s_external example.org {\napex " + strings.Repeat("a", 64) + "\n}": "a label has 1 to 63 octets",
		"k8s_external {\nzone x\n}":                                           "unknown property 'zone'",
	} {
		if err := setup(caddy.NewTestController("dns", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A service may have a name for its address, in our own zone, too: the server is asked for it, but not for ever.
func TestNamesInTheZone(t *testing.T) {
	e := external()
	cfg := &dnsserver.Config{Zone: ".", ListenHosts: []string{"127.0.0.1"}, Port: "0"}
	asked := 0
	cfg.AddPlugin(func(plugin.Handler) plugin.Handler {
		return plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			asked++
			if r.Question[0].Name != "lb.dyn.example.org." {
				return e.ServeDNS(ctx, w, r)
			}
			m := new(dns.Msg).SetReply(r)
			if r.Question[0].Qtype == dns.TypeA {
				m.Answer = []dns.RR{test.A("lb.dyn.example.org. 60 IN A 192.0.2.42")}
			}
			return dns.RcodeSuccess, w.WriteMsg(m)
		})
	})
	s, err := dnsserver.NewServer("dns://127.0.0.1:0", []*dnsserver.Config{cfg})
	if err != nil {
		t.Fatal(err)
	}
	const lb = "lb.dyn.example.org. 60 IN A 192.0.2.42"
	for _, tc := range []struct {
		name string
		typ  uint16
		want string
	}{
		{"near.shop.example.org.", dns.TypeA, "NOERROR " + lb + "; near.shop.example.org. 5 IN CNAME lb.dyn.example.org."},
		{"near.shop.example.org.", dns.TypeSRV, "NOERROR " + lb + "; near.shop.example.org. 5 IN SRV 0 100 80 lb.dyn.example.org."},
		{"far.shop.example.org.", dns.TypeA, "NOERROR far.shop.example.org. 5 IN CNAME near.shop.example.org.; " + lb + "; near.shop.example.org. 5 IN CNAME lb.dyn.example.org."},
		{"near.shop.example.org.", dns.TypeAAAA, "NOERROR +SOA"},
		{"round.shop.example.org.", dns.TypeA, "NOERROR +SOA"},
	} {
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		asked = 0
		s.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion(tc.name, tc.typ))
		if rec.Msg == nil || text(rec.Msg) != tc.want || asked > 12 {
			t.Errorf("%s: %d questions, %v, want %s", tc.name, asked, rec.Msg, tc.want)
		}
	}
}

// choosing is an Externaler that knows which services an answer has room for.
type choosing struct{ *cluster }

func (c choosing) ExternalAnswer(state request.Request, headless bool) ([]msg.Service, int) {
	all, rcode := c.External(state, headless)
	return all[:1], rcode
}

// Who knows which services an answer has room for is not asked for all of them.
func TestServicesOfAnAnswer(t *testing.T) {
	e := external()
	e.source = choosing{&cluster{serial: 17}}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if _, err := e.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion("cart.shop.example.org.", dns.TypeSRV)); err != nil || len(rec.Msg.Answer) != 1 {
		t.Errorf("%v, %v", err, rec.Msg)
	}
}
