package dns64

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

var errUpstream = errors.New("upstream is gone")

// lookups answers lookups and notes them.
type lookups struct {
	reply *dns.Msg
	err   error
	asked *string
}

func (u lookups) Lookup(_ context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error) {
	*u.asked = name + " " + dns.Type(typ).String() + " from " + state.IP()
	return u.reply, u.err
}

// reply makes a message of three sections, a record a line.
func reply(rcode int, sections ...string) *dns.Msg {
	m := new(dns.Msg)
	m.Response, m.Rcode, m.Authoritative, m.RecursionAvailable, m.AuthenticatedData = true, rcode, true, true, true
	for i, to := range []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra} {
		if i >= len(sections) {
			break
		}
		for line := range strings.Lines(sections[i]) {
			rr, err := dns.NewRR(strings.TrimSpace(line))
			if err != nil {
				panic(err)
			}
			*to = append(*to, rr)
		}
	}
	return m
}

func brief(m *dns.Msg) string {
	if m == nil {
		return "nothing"
	}
	s := dns.RcodeToString[m.Rcode]
	for _, b := range []struct {
		on   bool
		name string
	}{{m.Authoritative, " aa"}, {m.RecursionAvailable, " ra"}, {m.AuthenticatedData, " ad"}, {m.Truncated, " tc"}} {
		if b.on {
			s += b.name
		}
	}
	for i, rrs := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range rrs {
			s += "\n" + []string{"", "ns ", "extra "}[i] + strings.ReplaceAll(rr.String(), "\t", " ")
		}
	}
	return s
}

const (
	a      = "www.example.org. 300 IN A 192.0.2.1"
	aaaa   = "www.example.org. 300 IN AAAA 2001:db8::1"
	mapped = "www.example.org. 300 IN AAAA ::ffff:192.0.2.1"
	alias  = "www.example.org. 300 IN CNAME web.example.org."
	web    = "web.example.org. 300 IN A 192.0.2.1\nweb.example.org. 900 IN A 198.51.100.7"
	soa    = "example.org. 60 IN SOA ns.example.org. root.example.org. 1 2 3 4 5"
	ns     = "example.org. 300 IN NS ns.example.org."
	glue   = "ns.example.org. 300 IN A 192.0.2.53"
	made   = "www.example.org. 300 IN AAAA 64:ff9b::c000:201"
)

func serving(t testing.TB, directive string, next plugin.Handler, up UpstreamInt) *DNS64 {
	t.Helper()
	c := caddy.NewTestController("dns", directive)
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	d := dnsserver.GetConfig(c).Plugin[0](next).(*DNS64)
	d.Upstream = up
	return d
}

func cut(m *dns.Msg) *dns.Msg {
	m.Truncated = true
	return m
}

func TestServeDNS(t *testing.T) {
	nodata := reply(0, "", soa)
	for name, tc := range map[string]struct {
		options string
		qtype   uint16
		below   *dns.Msg // what the plugins below reply; nil: nothing, REFUSED
		upper   lookups  // its reply to the lookup
		want    string
		looked  bool
	}{
		"no AAAA":            {"", dns.TypeAAAA, nodata, lookups{reply: reply(0, a, ns, glue)}, "NOERROR aa ra\nwww.example.org. 60 IN AAAA 64:ff9b::c000:201\nns " + ns + "\nextra " + glue, true},
		"no SOA":             {"", dns.TypeAAAA, reply(0), lookups{reply: reply(0, a)}, "NOERROR aa ra\n" + made, true},
		"long TTL":           {"", dns.TypeAAAA, reply(0), lookups{reply: reply(0, strings.Replace(a, "300", "9000", 1))}, "NOERROR aa ra\n" + strings.Replace(made, "300", "600", 1), true},
		"alias":              {"", dns.TypeAAAA, reply(0, alias, soa), lookups{reply: reply(0, alias+"\n"+web)}, "NOERROR aa ra\n" + alias + "\nweb.example.org. 60 IN AAAA 64:ff9b::c000:201\nweb.example.org. 60 IN AAAA 64:ff9b::c633:6407", true},
		"SERVFAIL":           {"", dns.TypeAAAA, reply(dns.RcodeServerFailure), lookups{reply: reply(0, a)}, "NOERROR aa ra\n" + made, true},
		"SERVFAIL for both":  {"", dns.TypeAAAA, reply(dns.RcodeServerFailure), lookups{reply: reply(dns.RcodeServerFailure)}, "SERVFAIL aa ra", true},
		"neither":            {"", dns.TypeAAAA, nodata, lookups{reply: reply(0, "", soa)}, "NOERROR aa ra ad\nns " + soa, true},
		"AAAA are cut":       {"", dns.TypeAAAA, cut(reply(0)), lookups{}, "NOERROR aa ra ad tc", false},
		"AAAA are half cut":  {"", dns.TypeAAAA, cut(reply(0, aaaa)), lookups{}, "NOERROR aa ra ad tc\n" + aaaa, false},
		"all, but cut":       {"translate_all", dns.TypeAAAA, cut(reply(0)), lookups{reply: reply(0, a)}, "NOERROR aa ra\n" + made, true},
		"A are cut":          {"", dns.TypeAAAA, nodata, lookups{reply: cut(reply(0, a))}, "NOERROR aa ra tc\nwww.example.org. 60 IN AAAA 64:ff9b::c000:201", true},
		"A are all cut":      {"", dns.TypeAAAA, nodata, lookups{reply: cut(reply(0, alias))}, "NOERROR aa ra tc\n" + alias, true},
		"A fail":             {"", dns.TypeAAAA, nodata, lookups{reply: reply(dns.RcodeServerFailure)}, "SERVFAIL aa ra", true},
		"A are refused":      {"", dns.TypeAAAA, nodata, lookups{reply: reply(dns.RcodeRefused)}, "REFUSED aa ra", true},
		"A are denied":       {"", dns.TypeAAAA, nodata, lookups{reply: reply(dns.RcodeNameError, "", soa)}, "NOERROR aa ra ad\nns " + soa, true},
		"all, but A fail":    {"translate_all", dns.TypeAAAA, reply(0, aaaa), lookups{reply: reply(dns.RcodeServerFailure)}, "NOERROR aa ra ad\n" + aaaa, true},
		"NXDOMAIN":           {"", dns.TypeAAAA, reply(dns.RcodeNameError, "", soa), lookups{}, "NXDOMAIN aa ra ad\nns " + soa, false},
		"AAAA":               {"", dns.TypeAAAA, reply(0, aaaa), lookups{}, "NOERROR aa ra ad\n" + aaaa, false},
		"mapped AAAA":        {"", dns.TypeAAAA, reply(0, mapped), lookups{reply: reply(0, a)}, "NOERROR aa ra\n" + made, true},
		"mapped and other":   {"", dns.TypeAAAA, reply(0, mapped+"\n"+aaaa), lookups{}, "NOERROR aa ra\n" + aaaa, false},
		"mapped, and no A":   {"", dns.TypeAAAA, reply(0, alias+"\n"+mapped, soa), lookups{reply: reply(0, alias, soa)}, "NOERROR aa ra\n" + alias + "\nns " + soa, true},
		"all":                {"translate_all", dns.TypeAAAA, reply(0, aaaa), lookups{reply: reply(0, a)}, "NOERROR aa ra\n" + made, true},
		"all, but no A":      {"translate_all", dns.TypeAAAA, reply(0, aaaa), lookups{reply: reply(0, "", soa)}, "NOERROR aa ra ad\n" + aaaa, true},
		"all, NXDOMAIN":      {"translate_all", dns.TypeAAAA, reply(dns.RcodeNameError, "", soa), lookups{}, "NXDOMAIN aa ra ad\nns " + soa, false},
		"another type":       {"", dns.TypeA, reply(0, "", soa), lookups{}, "NOERROR aa ra ad\nns " + soa, false},
		"nothing written":    {"", dns.TypeAAAA, nil, lookups{}, "REFUSED", false},
		"lookup fails":       {"", dns.TypeAAAA, nodata, lookups{err: errUpstream}, "SERVFAIL upstream is gone", true},
		"lookup gives none":  {"", dns.TypeAAAA, nodata, lookups{}, "SERVFAIL plugin/dns64: no reply to the lookup of A records", true},
		"prefix of the site": {"prefix 2001:db8:1::/48", dns.TypeAAAA, nodata, lookups{reply: reply(0, a)}, "NOERROR aa ra\nwww.example.org. 60 IN AAAA 2001:db8:1:c000:2:100::", true},
	} {
		asked := ""
		tc.upper.asked = &asked
		below := test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			if tc.below == nil {
				return dns.RcodeRefused, nil
			}
			m := tc.below.Copy()
			m.Id, m.Question = r.Id, r.Question
			return 0, w.WriteMsg(m)
		})
		d := serving(t, "dns64 {\n"+tc.options+"\n}", below, tc.upper)
		before := testutil.ToFloat64(RequestsTranslatedCount.WithLabelValues(""))
		rec := dnstest.NewRecorder(&test.ResponseWriter{RemoteIP: "2001:db8::99"})
		query := new(dns.Msg).SetQuestion("www.Example.org.", tc.qtype)
		rc, err := d.ServeDNS(t.Context(), rec, query)
		got := brief(rec.Msg)
		if rec.Msg == nil {
			got = dns.RcodeToString[rc]
			if err != nil {
				got += " " + err.Error()
			}
		} else if rec.Msg.Id != query.Id || rec.Msg.Question[0] != query.Question[0] || rc != 0 || err != nil {
			t.Errorf("%s: got %v, %d, %v", name, rec.Msg, rc, err)
		}
		if got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tc.want)
		}
		if looked := asked == "www.Example.org. A from 2001:db8::99"; looked != tc.looked {
			t.Errorf("%s: looked up %q", name, asked)
		}
		want := 0.0
		if tc.upper.reply != nil { // A records were looked up, whether there are any or not
			want = 1
		}
		if n := testutil.ToFloat64(RequestsTranslatedCount.WithLabelValues("")) - before; n != want {
			t.Errorf("%s: counted %v", name, n)
		}
	}
}

// Which queries it acts on, in both lanes.
func TestWhatPasses(t *testing.T) {
	for _, tc := range []struct {
		options, client string
		query           *dns.Msg
		acts            bool
	}{
		{"", "2001:db8::1", with(dns.TypeAAAA, false, false), true},
		{"", "192.0.2.1", with(dns.TypeAAAA, false, false), false},
		{"", "::ffff:192.0.2.1", with(dns.TypeAAAA, false, false), false},
		{"allow_ipv4", "192.0.2.1", with(dns.TypeAAAA, false, false), true},
		{"", "2001:db8::1", with(dns.TypeA, false, false), false},
		{"", "2001:db8::1", with(dns.TypeAAAA, true, false), true},
		{"", "2001:db8::1", with(dns.TypeAAAA, false, true), true},
		{"", "2001:db8::1", with(dns.TypeAAAA, true, true), false},
		{"", "2001:db8::1", with(dns.TypePTR, false, false), false},
	} {
		asked := ""
		source := nothing{}
		d := serving(t, "dns64 {\n"+tc.options+"\n}", source, lookups{reply: reply(0, a), asked: &asked})
		d.ServeDNS(t.Context(), &test.ResponseWriter{RemoteIP: tc.client}, tc.query)
		if (asked != "") != tc.acts {
			t.Errorf("%q from %s, %v: looked up %q", tc.options, tc.client, tc.query.Question, asked)
		}
		packet, _ := tc.query.Pack()
		var q wire.Query
		var w wire.Reply
		q.Parse(packet)
		q.Client = netip.AddrPortFrom(netip.MustParseAddr(tc.client).Unmap(), 53)
		w.Reset(nil)
		want := wire.Done
		if tc.acts {
			want = wire.Unpack
		}
		if out := d.ServeWire(t.Context(), &w, &q); out != want {
			t.Errorf("%q from %s, %v: %v", tc.options, tc.client, tc.query.Question, out)
		}
	}
	asked := ""
	d := serving(t, "dns64", nothing{}, lookups{reply: reply(0, a), asked: &asked})
	for name, spoil := range map[string]func(*dns.Msg){
		"class":    func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS },
		"opcode":   func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify },
		"question": func(m *dns.Msg) { m.Question = nil },
	} {
		m := with(dns.TypeAAAA, false, false)
		spoil(m)
		if d.ServeDNS(t.Context(), &test.ResponseWriter6{}, m); asked != "" {
			t.Errorf("%s: looked up %q", name, asked)
		}
	}
}

func with(qtype uint16, do, cd bool) *dns.Msg {
	m := new(dns.Msg).SetQuestion("www.example.org.", qtype)
	m.CheckingDisabled = cd
	if do {
		m.SetEdns0(1232, true)
	}
	return m
}

// nothing answers without records.
type nothing struct{}

func (nothing) Name() string               { return "nothing" }
func (n nothing) WireSelf() plugin.Handler { return n }
func (nothing) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) == 0 {
		return 0, nil
	}
	return 0, w.WriteMsg(new(dns.Msg).SetReply(r))
}
func (nothing) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	w.Begin(q)
	return wire.Done
}

func TestPTR(t *testing.T) {
	const (
		reverse = "1.0.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa."
		other   = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa."
		ptr     = "1.2.0.192.in-addr.arpa. 60 IN PTR www.example.org."
	)
	for _, tc := range []struct {
		options, name string
		qtype         uint16
		up            lookups
		want, asked   string
	}{
		{"translate_ptr", reverse, dns.TypePTR, lookups{reply: reply(0, ptr)}, "NOERROR ra\n" + reverse + " 600 IN CNAME 1.2.0.192.in-addr.arpa.\n" + ptr, "1.2.0.192.in-addr.arpa. PTR from fe80::42:ff:feca:4c65"},
		{"translate_ptr", strings.ToUpper(reverse), dns.TypePTR, lookups{reply: reply(dns.RcodeNameError, "", soa)}, "NXDOMAIN ra\n" + strings.ToUpper(reverse) + " 600 IN CNAME 1.2.0.192.in-addr.arpa.\nns " + soa, "1.2.0.192.in-addr.arpa. PTR from fe80::42:ff:feca:4c65"},
		{"translate_ptr", reverse, dns.TypePTR, lookups{}, "NOERROR\n" + reverse + " 600 IN CNAME 1.2.0.192.in-addr.arpa.", "1.2.0.192.in-addr.arpa. PTR from fe80::42:ff:feca:4c65"},
		{"translate_ptr", reverse, dns.TypePTR, lookups{err: errUpstream}, "nothing", "1.2.0.192.in-addr.arpa. PTR from fe80::42:ff:feca:4c65"},
		{"translate_ptr", reverse, dns.TypeTXT, lookups{}, "NOERROR", ""},
		{"translate_ptr", other, dns.TypePTR, lookups{}, "NOERROR", ""},
		{"translate_ptr", reverse[2:], dns.TypePTR, lookups{}, "NOERROR", ""},
		{"translate_ptr", "1.2.0.192.in-addr.arpa.", dns.TypePTR, lookups{}, "NOERROR", ""},
		{"", reverse, dns.TypePTR, lookups{}, "NOERROR", ""},
	} {
		asked := ""
		tc.up.asked = &asked
		d := serving(t, "dns64 {\n"+tc.options+"\n}", nothing{}, tc.up)
		rec := dnstest.NewRecorder(&test.ResponseWriter6{})
		query := new(dns.Msg).SetQuestion(tc.name, tc.qtype)
		d.ServeDNS(t.Context(), rec, query)
		if got := brief(rec.Msg); got != tc.want || asked != tc.asked {
			t.Errorf("%q %s: asked %q, got\n%s\nwant\n%s", tc.options, tc.name, asked, got, tc.want)
		}
		packet, _ := query.Pack()
		var q wire.Query
		var w wire.Reply
		q.Parse(packet)
		w.Reset(nil)
		if out := d.ServeWire(t.Context(), &w, &q); out == wire.Done && tc.asked != "" {
			t.Errorf("%q %s: done in the wire lane", tc.options, tc.name)
		}
	}
}

// RFC 6052 §2.4, and lengths between.
func TestEmbed(t *testing.T) {
	for prefix, want := range map[string]string{
		"2001:db8::/32":             "2001:db8:c000:221::",
		"2001:db8:100::/40":         "2001:db8:1c0:2:21::",
		"2001:db8:122::/48":         "2001:db8:122:c000:2:2100::",
		"2001:db8:122:300::/56":     "2001:db8:122:3c0:0:221::",
		"2001:db8:122:344::/64":     "2001:db8:122:344:c0:2:2100::",
		"2001:db8:122:344::/96":     "2001:db8:122:344::192.0.2.33",
		"64:ff9b::/96":              "64:ff9b::192.0.2.33",
		"2001:db8:122:344:0::/72":   "2001:db8:122:344:c0:2:2100::",
		"2001:db8:122:344:5::/80":   "2001:db8:122:344:5:c000:221::",
		"2001:db8:122:344:5:6::/88": "2001:db8:122:344:5:c0:2:2100",
	} {
		p, err := parsePrefix(prefix)
		if err != nil {
			t.Fatal(err)
		}
		got := embed(p, net.ParseIP("192.0.2.33"))
		if !got.Equal(net.ParseIP(want)) {
			t.Errorf("%s: got %v, want %s", prefix, got, want)
		}
		if back := extract(p, got); !back.Equal(net.ParseIP("192.0.2.33")) {
			t.Errorf("%s: back comes %v", prefix, back)
		}
		if extract(p, net.ParseIP("2001:db9::1")) != nil {
			t.Errorf("%s: taken out of an address elsewhere", prefix)
		}
	}
	p, _ := parsePrefix("2001:db8::/32")
	if four := extract(p, net.ParseIP("2001:db8:c000:221::1")); four != nil {
		t.Errorf("%v was never put there", four)
	}
}

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input, prefix, err string
		all, four          bool
	}{
		{"dns64", "64:ff9b::/96", "", false, false},
		{"dns64 64:dead::/96", "64:dead::/96", "", false, false},
		{"dns64 2001:db8::/32 {\n}", "2001:db8::/32", "", false, false},
		{"dns64 2001:db8::/32 {\nallow_ipv4\n}", "2001:db8::/32", "", false, true},
		{"dns64 {\ntranslate_all\nallow_ipv4\n}", "64:ff9b::/96", "", true, true},
		{"dns64 {\nprefix 64:ff9b::/32\n}", "64:ff9b::/32", "", false, false},
		{"dns64 {\nprefix 2002:ac12:b083::/88\nprefix 2002:c0a8:a88a::/48\n}", "2002:c0a8:a88a::/48", "", false, false},
		{"dns64 2001:db8::/32\ndns64 {\nprefix 2001:db8::/40\n}", "2001:db8::/40", "", false, false},
		{"dns64 foobar", "", "plugin/dns64: Testfile:1 - Error during parsing: invalid CIDR address: foobar", false, false},
		{"dns64 10.0.0.0/8", "", `invalid netmask 32 IPv6 address: "10.0.0.0/8"`, false, false},
		{"dns64 2001:db8::/30", "", `invalid prefix length "2001:db8::/30"`, false, false},
		{"dns64 {\nprefix 64:ff9b::/52\n}", "", `plugin/dns64: Testfile:2 - Error during parsing: invalid prefix length "64:ff9b::/52"`, false, false},
		{"dns64 {\nprefix 64:ff9b::/104\n}", "", "invalid prefix length", false, false},
		{"dns64 {\nprefix\n}", "", "Wrong argument count", false, false},
		{"dns64 {\nfoobar\n}", "", "unknown property 'foobar'", false, false},
		{"dns64 a b", "", "Wrong argument count", false, false},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
		if err == nil {
			d := dnsserver.GetConfig(c).Plugin[0](nil).(*DNS64)
			if d.Prefix.String() != tc.prefix || d.TranslateAll != tc.all || d.AllowIPv4 != tc.four || d.Upstream == nil {
				t.Errorf("%q: got %+v", tc.input, d)
			}
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

// What is embedded under any prefix that is taken comes out again.
func FuzzPrefix(f *testing.F) {
	f.Add("64:ff9b::/96", []byte{192, 0, 2, 1})
	f.Add("2001:db8::/32", []byte{0, 0, 0, 0})
	f.Add("10.0.0.0/8", []byte{1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, text string, four []byte) {
		p, err := parsePrefix(text)
		if err != nil || len(four) != net.IPv4len {
			return
		}
		ip := embed(p, four)
		if ip.To4() != nil {
			return // mapped addresses count as none
		}
		if !p.Contains(ip) || !extract(p, ip).Equal(net.IP(four)) {
			t.Fatalf("%v under %v is %v", net.IP(four), p, ip)
		}
	})
}

func BenchmarkServeWire(b *testing.B) {
	packet, _ := with(dns.TypeA, false, false).Pack()
	q, w := new(wire.Query), new(wire.Reply)
	q.Parse(packet)
	buf := make([]byte, 512)
	var d plugin.WireHandler = serving(b, "dns64", nothing{}, nil)
	b.ReportAllocs()
	for b.Loop() {
		w.Reset(buf)
		d.ServeWire(b.Context(), w, q)
	}
}

func BenchmarkSynthesize(b *testing.B) {
	d := serving(b, "dns64", nil, nil)
	query := with(dns.TypeAAAA, false, false)
	empty, resp := reply(0, "", soa), reply(0, alias+"\n"+web)
	b.ReportAllocs()
	for b.Loop() {
		d.Synthesize(query, empty, resp)
	}
}
