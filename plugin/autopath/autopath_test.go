package autopath

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

var errBroken = errors.New("broken")

// zone knows some names: it has an address, or does what the name's value says.
type zone struct {
	names map[string]string
	asked *[]string
}

func (z zone) Name() string             { return "zone" }
func (z zone) WireSelf() plugin.Handler { return z }

func (z zone) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	name := r.Question[0].Name
	*z.asked = append(*z.asked, name)
	m := new(dns.Msg).SetReply(r)
	switch what := z.names[strings.ToLower(name)]; what {
	case "":
		m.Rcode = dns.RcodeNameError
		m.Ns = []dns.RR{test.SOA(name + " 60 IN SOA a. b. 1 2 3 4 5")}
		return m.Rcode, w.WriteMsg(m)
	case "denied with an error":
		m.Rcode = dns.RcodeNameError
		w.WriteMsg(m)
		return m.Rcode, errBroken
	case "nodata":
		m.Ns = []dns.RR{test.SOA(name + " 60 IN SOA a. b. 1 2 3 4 5")}
	case "refused":
		m.Rcode = dns.RcodeRefused
	case "broken":
		return dns.RcodeServerFailure, errBroken
	case "gave way":
		return dns.RcodeServerFailure, plugin.Error("zone", proxy.ErrGaveWay)
	case "servfail":
		return dns.RcodeServerFailure, nil
	case "formerr":
		return dns.RcodeFormatError, nil
	case "drop":
		return dns.RcodeSuccess, nil
	case "secure":
		m.AuthenticatedData = true
		m.Answer = []dns.RR{test.A(name + " 60 IN A 192.0.2.1")}
	case "raw":
		b, _ := m.Pack()
		_, err := w.Write(b)
		return dns.RcodeSuccess, err
	case "twice":
		w.WriteMsg(m)
		return dns.RcodeServerFailure, nil
	case "asked":
		m.Answer = []dns.RR{test.TXT(name + " 60 IN TXT " + w.(interface{ AskedName() string }).AskedName())}
	default:
		m.Answer = []dns.RR{test.A(name + " 60 IN A " + what)}
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

func (z zone) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	*z.asked = append(*z.asked, wire.Text(q.Name()))
	w.Drop()
	return wire.Done
}

// An entry may be written otherwise than the names of queries are.
func TestSpelling(t *testing.T) {
	for _, tc := range []struct{ name, entry, want string }{
		{`web.a.\195\164.org.`, "ä.org.", "web.a"},
		{`web.dec\.imal.org.`, `dec\046imal.org.`, "web"},
		{"a.web.abc.org.", `\097bc.org.`, "a.web"},
		{`\195\164.org.`, "ä.org.", ""},
		{`a\.one.test.`, "one.test.", ""},
		{`a\.b.one.test.`, "One.test", `a\.b`},
		{"one.test.", "two.one.test.", ""},
	} {
		if got, ok := completed(tc.name, []string{tc.entry}); got != tc.want || ok != (tc.want != "") {
			t.Errorf("%s without %s: got %s %t, want %s", tc.name, tc.entry, got, ok, tc.want)
		}
	}
}

// resolvConf is a file with a search list.
func resolvConf(t testing.TB, search string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver 127.0.0.1\n"+search+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func serving(t testing.TB, directive string, next plugin.Handler) *AutoPath {
	t.Helper()
	c := caddy.NewTestController("dns", directive)
	c.ServerBlockKeys = []string{"."}
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	return dnsserver.GetConfig(c).Plugin[0](next).(*AutoPath)
}

func brief(m *dns.Msg) string {
	if m == nil {
		return "nothing"
	}
	s := dns.RcodeToString[m.Rcode] + " " + m.Question[0].Name
	for i, rrs := range [][]dns.RR{m.Answer, m.Ns} {
		for _, rr := range rrs {
			f := strings.Fields(rr.String())
			s += []string{", ", ", ns "}[i] + f[0] + " " + f[1] + " " + f[3] + " " + f[4]
		}
	}
	return s
}

func TestWalk(t *testing.T) {
	names := map[string]string{
		"www.one.test.": "192.0.2.1", "www.two.test.": "192.0.2.2", "two.two.test.": "192.0.2.3", "three.test.": "192.0.2.4", "x.example.org.": "192.0.2.5",
		"nodata.two.test.": "nodata", "refused.two.test.": "refused", "broken.two.test.": "broken", "broken1.one.test.": "broken", "servfail.two.test.": "servfail", "servfail1.one.test.": "servfail",
		"broken2.one.test.": "broken", "broken2.two.test.": "broken", "broken2.test.": "192.0.2.6", "servfail2.one.test.": "servfail", "servfail2.test.": "servfail", "servfail2.": "192.0.2.7",
		"way.two.test.": "gave way", "way1.one.test.": "gave way",
		"formerr.two.test.": "formerr", "formerr1.one.test.": "formerr", "drop1.one.test.": "drop", "drop.two.test.": "drop", "raw.two.test.": "raw", "twice.two.test.": "twice", "denied.two.test.": "denied with an error", "asked.two.test.": "asked",
	}
	for _, tc := range []struct {
		name, want string // the reply
		asked      string // the names that were tried
		rcode      int
		err        bool
		counted    float64
	}{
		{"www.one.test.", "NOERROR www.one.test., www.one.test. 60 A 192.0.2.1", "www.one.test.", 0, false, 0},
		{"WWW.one.Test.", "NOERROR WWW.one.Test., WWW.one.Test. 60 A 192.0.2.1", "WWW.one.Test.", 0, false, 0},
		{"TWO.one.test.", "NOERROR TWO.one.test., TWO.one.test. 60 CNAME two.two.test., two.two.test. 60 A 192.0.2.3", "TWO.one.test. two.two.test.", 0, false, 1},
		{"three.test.one.test.", "NOERROR three.test.one.test., three.test.one.test. 60 CNAME three.test., three.test. 60 A 192.0.2.4", "three.test.one.test. three.test.two.test. three.test.test. three.test.", 0, false, 1},
		{"none.one.test.", "NXDOMAIN none.one.test., ns none.one.test. 60 SOA a.", "none.one.test. none.two.test. none.test. none.", dns.RcodeNameError, false, 0},
		{"nodata.one.test.", "NOERROR nodata.one.test., ns nodata.two.test. 60 SOA a.", "nodata.one.test. nodata.two.test.", 0, false, 1},
		{"refused.one.test.", "REFUSED refused.one.test.", "refused.one.test. refused.two.test.", 0, false, 1},
		{"asked.one.test.", "NOERROR asked.one.test., asked.one.test. 60 CNAME asked.two.test., asked.two.test. 60 TXT \"asked.one.test.\"", "asked.one.test. asked.two.test.", 0, false, 1},
		// What goes wrong.
		{"broken.one.test.", "NXDOMAIN broken.one.test., ns broken.one.test. 60 SOA a.", "broken.one.test. broken.two.test. broken.test. broken.", dns.RcodeNameError, true, 0},
		{"broken1.one.test.", "nothing", "broken1.one.test. broken1.two.test. broken1.test. broken1.", dns.RcodeServerFailure, true, 0},
		{"broken2.one.test.", "NOERROR broken2.one.test., broken2.one.test. 60 CNAME broken2.test., broken2.test. 60 A 192.0.2.6", "broken2.one.test. broken2.two.test. broken2.test.", 0, true, 1},
		{"servfail.one.test.", "NXDOMAIN servfail.one.test., ns servfail.one.test. 60 SOA a.", "servfail.one.test. servfail.two.test. servfail.test. servfail.", dns.RcodeNameError, false, 0},
		{"servfail1.one.test.", "nothing", "servfail1.one.test. servfail1.two.test. servfail1.test. servfail1.", dns.RcodeServerFailure, false, 0},
		{"servfail2.one.test.", "NOERROR servfail2.one.test., servfail2.one.test. 60 CNAME servfail2., servfail2. 60 A 192.0.2.7", "servfail2.one.test. servfail2.two.test. servfail2.test. servfail2.", 0, false, 1},
		{"way.one.test.", "NXDOMAIN way.one.test., ns way.one.test. 60 SOA a.", "way.one.test. way.two.test.", dns.RcodeNameError, true, 0},
		{"way1.one.test.", "nothing", "way1.one.test.", dns.RcodeServerFailure, true, 0},
		{"formerr.one.test.", "NXDOMAIN formerr.one.test., ns formerr.one.test. 60 SOA a.", "formerr.one.test. formerr.two.test.", dns.RcodeNameError, false, 0},
		{"formerr1.one.test.", "nothing", "formerr1.one.test.", dns.RcodeFormatError, false, 0},
		{"denied.one.test.", "NXDOMAIN denied.one.test., ns denied.one.test. 60 SOA a.", "denied.one.test. denied.two.test.", dns.RcodeNameError, true, 0},
		{"drop1.one.test.", "nothing", "drop1.one.test.", 0, false, 0},
		{"drop.one.test.", "nothing", "drop.one.test. drop.two.test.", 0, false, 0},
		{"raw.one.test.", "nothing", "raw.one.test. raw.two.test.", 0, false, 1},
		{"twice.one.test.", "NOERROR twice.one.test.", "twice.one.test. twice.two.test.", 0, false, 1},
		// What the list is not for.
		{"one.test.", "NXDOMAIN one.test., ns one.test. 60 SOA a.", "one.test.", dns.RcodeNameError, false, 0},
		{"www.two.test.", "NOERROR www.two.test., www.two.test. 60 A 192.0.2.2", "www.two.test.", 0, false, 0},
		{"wwwone.test.", "NXDOMAIN wwwone.test., ns wwwone.test. 60 SOA a.", "wwwone.test.", dns.RcodeNameError, false, 0},
		{".", "NXDOMAIN ., ns . 60 SOA a.", ".", dns.RcodeNameError, false, 0},
	} {
		var asked []string
		a := serving(t, "autopath "+resolvConf(t, "search ONE.test two.test test"), zone{names, &asked})
		before := testutil.ToFloat64(autoPathCount.WithLabelValues(""))
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		query := new(dns.Msg).SetQuestion(tc.name, dns.TypeA)
		rc, err := a.ServeDNS(t.Context(), rec, query)
		if got := brief(rec.Msg); got != tc.want || strings.Join(asked, " ") != tc.asked || rc != tc.rcode || (err != nil) != tc.err {
			t.Errorf("%s: got %s, %d, %v after %q", tc.name, got, rc, err, asked)
		}
		if n := testutil.ToFloat64(autoPathCount.WithLabelValues("")) - before; n != tc.counted {
			t.Errorf("%s: counted %v", tc.name, n)
		}
		if query.Question[0].Name != tc.name {
			t.Errorf("the client's query became %v", query.Question)
		}

		// The wire lane leaves it what has more than one name to try.
		asked = nil
		packet, _ := query.Pack()
		var q wire.Query
		var w wire.Reply
		q.Parse(packet)
		want, served := wire.Done, 1
		if strings.HasSuffix(strings.ToLower(tc.name), ".one.test.") {
			want, served = wire.Unpack, 0
		}
		if out := a.ServeWire(t.Context(), &w, &q); out != want || len(asked) != served {
			t.Errorf("%s: %v after %q", tc.name, out, asked)
		}
	}
}

// An entry with which the name would be longer than names are is passed over: no source could answer, and no reply be sent.
// What *validator* found to be secure is so for the name that was found, and nobody has signed the alias.
func TestValidated(t *testing.T) {
	for _, tc := range []struct {
		name      string
		validates bool
		want      bool
	}{
		{"www.one.test.", true, true}, // the first entry: the name that was asked for
		{"web.one.test.", true, false},
		{"web.one.test.", false, true}, // what an upstream says is passed on
	} {
		var asked []string
		a := serving(t, "autopath "+resolvConf(t, "search one.test two.test"), zone{map[string]string{"www.one.test.": "secure", "web.two.test.": "secure"}, &asked})
		a.validates = tc.validates
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		if _, err := a.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion(tc.name, dns.TypeA)); err != nil || rec.Msg == nil || len(rec.Msg.Answer) == 0 {
			t.Fatalf("%s: %v %v", tc.name, err, rec.Msg)
		}
		if got := rec.Msg.AuthenticatedData; got != tc.want {
			t.Errorf("%s, validates: %v: AD is %v", tc.name, tc.validates, got)
		}
	}
}

func TestTooLong(t *testing.T) {
	long := strings.TrimSuffix(strings.Repeat(strings.Repeat("x", 60)+".", 4), ".")
	var asked []string
	a := serving(t, "autopath "+resolvConf(t, "search one.test three.test"), zone{map[string]string{long + ".": "192.0.2.1"}, &asked})
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rc, err := a.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion(long+".one.test.", dns.TypeA))
	want := "NOERROR LONG.one.test., LONG.one.test. 60 CNAME LONG., LONG. 60 A 192.0.2.1 after LONG.one.test. LONG."
	if got := strings.ReplaceAll(brief(rec.Msg)+" after "+strings.Join(asked, " "), long, "LONG"); got != want || rc != 0 || err != nil {
		t.Errorf("%s, %d, %v", got, rc, err)
	}
}

func TestZones(t *testing.T) {
	for zones, want := range map[string]int{"": 4, "one.test": 4, "other.test one.test.": 4, "two.test": 1, "x.one.test": 1} {
		var asked []string
		a := serving(t, "autopath "+zones+" "+resolvConf(t, "search one.test two.test test"), zone{nil, &asked})
		query := new(dns.Msg).SetQuestion("none.one.test.", dns.TypeA)
		a.ServeDNS(t.Context(), &test.ResponseWriter{}, query)
		if len(asked) != want {
			t.Errorf("%q: tried %q", zones, asked)
		}
		packet, _ := query.Pack()
		var q wire.Query
		q.Parse(packet)
		if out := a.ServeWire(t.Context(), new(wire.Reply), &q); (out == wire.Unpack) != (want > 1) {
			t.Errorf("%q: %v", zones, out)
		}
	}
}

func TestWithoutList(t *testing.T) {
	var asked []string
	for _, a := range []*AutoPath{
		{Zones: []string{"."}, Next: zone{nil, &asked}},
		serving(t, "autopath "+resolvConf(t, "options ndots:1"), zone{nil, &asked}),
		serving(t, "autopath "+resolvConf(t, "search ."), zone{nil, &asked}),
	} {
		asked = nil
		query := new(dns.Msg).SetQuestion("www.one.test.", dns.TypeA)
		a.ServeDNS(t.Context(), &test.ResponseWriter{}, query)
		packet, _ := query.Pack()
		var q wire.Query
		q.Parse(packet)
		if out := a.ServeWire(t.Context(), new(wire.Reply), &q); out != wire.Done || len(asked) != 2 {
			t.Errorf("%v after %q", out, asked)
		}
	}
	a := AutoPath{Zones: []string{"."}, Next: test.NextHandler(dns.RcodeRefused, errBroken)}
	if rc, err := a.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg)); rc != dns.RcodeRefused || err != errBroken {
		t.Errorf("got %d, %v", rc, err)
	}
}

// An update is passed on once and as it is, also where a query for the zone's name would be tried in each entry of the list.
func TestUpdate(t *testing.T) {
	update := new(dns.Msg).SetUpdate("none.one.test.")
	n := 0
	next := plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if n++; r != update {
			t.Errorf("it became %v", r)
		}
		return dns.RcodeSuccess, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNameError)) // a prerequisite's (RFC 2136 §2.4.4)
	})
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	a := serving(t, "autopath "+resolvConf(t, "search one.test two.test"), next)
	if rc, err := a.ServeDNS(t.Context(), rec, update); rc != dns.RcodeSuccess || err != nil || n != 1 || rec.Msg == nil || rec.Msg.Rcode != dns.RcodeNameError {
		t.Errorf("asked %d times; got %d, %v, %v", n, rc, err, rec.Msg)
	}
}

// pods knows the lists of some clients.
type pods struct{ zone }

func (p pods) WireSelf() plugin.Handler { return p }
func (p pods) AutoPath(state request.Request) []string {
	switch state.IP() {
	case "192.0.2.7", "2001:db8::7":
		return []string{state.Type() + ".one.test.", "two.test.", ""}
	}
	return nil
}

// slow is a plugin that knows lists, but does not know of the wire lane.
type slow struct{ pods }

func TestPlugin(t *testing.T) {
	var asked []string
	for _, h := range []plugin.Handler{pods{zone{nil, &asked}}, slow{pods{zone{nil, &asked}}}} {
		_, knowsWire := h.(pods)
		for _, tc := range []struct {
			client, name string
			tried        int
		}{
			{"192.0.2.7", "www.a.one.test.", 3}, {"2001:db8::7", "www.a.one.test.", 3}, {"192.0.2.7", "www.mx.one.test.", 1},
			{"192.0.2.8", "www.a.one.test.", 1}, {"192.0.2.7", "a.one.test.", 1},
		} {
			l, err := (&settings{zones: []string{"."}}).lists()
			if err != nil {
				t.Fatal(err)
			}
			if err := l.ask(h, "pods", ""); err != nil {
				t.Fatal(err)
			}
			// Lists have lower names.
			of := l.of
			l.of = func(state request.Request) []string {
				list := of(state)
				for i := range list {
					list[i] = strings.ToLower(list[i])
				}
				return list
			}
			a := &AutoPath{Next: zone{nil, &asked}, Zones: []string{"."}, lists: l}
			query := new(dns.Msg).SetQuestion(tc.name, dns.TypeA)
			asked = nil
			a.ServeDNS(t.Context(), &test.ResponseWriter{RemoteIP: tc.client}, query)
			if len(asked) != tc.tried {
				t.Errorf("%s from %s: tried %q", tc.name, tc.client, asked)
			}
			packet, _ := query.Pack()
			for _, proto := range []wire.Proto{wire.UDP, wire.TCP} {
				var q wire.Query
				q.Parse(packet)
				q.Client, q.Proto = netip.AddrPortFrom(netip.MustParseAddr(tc.client), 53), proto
				out := a.ServeWire(t.Context(), new(wire.Reply), &q)
				if want := tc.tried > 1 || !knowsWire; (out == wire.Unpack) != want {
					t.Errorf("%s from %s: %v, knows the wire lane: %v", tc.name, tc.client, out, knowsWire)
				}
			}
		}
	}
}

func TestAsk(t *testing.T) {
	l := new(lists)
	if err := l.ask(nil, "kubernetes", "Corefile:7"); err != nil {
		t.Errorf("got %v", err)
	}
	if err := l.ask(zone{}, "zone", "Corefile:7"); err == nil || err.Error() != "plugin/autopath: zone does not implement the AutoPather interface" {
		t.Errorf("got %v", err)
	}
}

// A query of the wire lane looks to who knows lists as it does in the other.
func TestQuestion(t *testing.T) {
	m := new(dns.Msg).SetQuestion("WWW.one.test.", dns.TypeMX)
	m.Id = 7
	packet, _ := m.Pack()
	for _, addr := range []string{"192.0.2.7:4711", "[2001:db8::7]:1", "[fe80::1%eth0]:53"} {
		var q wire.Query
		q.Parse(packet)
		q.Client, q.Local = netip.MustParseAddrPort(addr), netip.MustParseAddrPort("192.0.2.1:53")
		asked(&q, func(state request.Request) bool {
			if state.RemoteAddr() != addr || state.LocalAddr() != "192.0.2.1:53" || state.QName() != "WWW.one.test." || state.QType() != dns.TypeMX || state.Req.Id != 7 || state.Proto() != "udp" {
				t.Errorf("%s: got %s %s %v", addr, state.RemoteAddr(), state.LocalAddr(), state.Req)
			}
			if state.W.WriteMsg(m) == nil {
				t.Error("somebody may write")
			}
			return true
		})
	}
}

func TestSetup(t *testing.T) {
	file := resolvConf(t, "search Example.org example.net")
	for _, tc := range []struct {
		input, err string
		zones      []string
		search     []string
	}{
		{"autopath " + file, "", []string{"."}, []string{"example.org.", "example.net.", ""}},
		{"autopath example.org 10.0.0.0/8 " + file, "", []string{"example.org.", "10.in-addr.arpa."}, []string{"example.org.", "example.net.", ""}},
		{"autopath a.test @erratic", "", []string{"a.test."}, nil},
		{"autopath a.test @erratic\nautopath b.test " + file, "", []string{"b.test."}, []string{"example.org.", "example.net.", ""}},
		{"autopath", "plugin/autopath: Testfile:1 - Error during parsing: no resolv-conf specified", nil, nil},
		{"autopath kubernetes", `plugin/autopath: Testfile:1 - Error during parsing: failed to parse "kubernetes": open kubernetes: no such file`, nil, nil},
		{`autopath ""`, `failed to parse "": `, nil, nil},
		{"autopath a..b @erratic", `invalid zone "a..b"`, nil, nil},
		{"autopath @erratic {\nx\n}", "unknown property 'x'", nil, nil},
		{"autopath " + resolvConf(t, "search a..b"), "search list", nil, nil},
	} {
		c := caddy.NewTestController("dns", tc.input)
		c.ServerBlockKeys = []string{"."}
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
		if err == nil {
			a := dnsserver.GetConfig(c).Plugin[0](nil).(*AutoPath)
			if !slices.Equal(a.Zones, tc.zones) || !slices.Equal(a.lists.search, tc.search) || len(a.lists.zones) != len(tc.zones) {
				t.Errorf("%q: got %v, %+v", tc.input, a, a.lists)
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

// Both lanes find the same queries to be for the list.
func FuzzLanes(f *testing.F) {
	for _, name := range []string{"www.one.test", "one.test", `a\.one.test`, "ONE.test.one.test", "."} {
		f.Add(name)
	}
	file := resolvConf(f, "search one.test two.test")
	var asked []string
	a := serving(f, "autopath "+file, zone{nil, &asked})
	f.Fuzz(func(t *testing.T, name string) {
		b, err := wire.AppendName(nil, name)
		if err != nil {
			return
		}
		query := new(dns.Msg).SetQuestion(wire.Text(b), dns.TypeA)
		packet, err := query.Pack()
		var q wire.Query
		if err != nil || !q.Parse(packet) {
			return
		}
		out := a.ServeWire(t.Context(), new(wire.Reply), &q)
		asked = nil
		a.ServeDNS(t.Context(), &test.ResponseWriter{}, query)
		if (out == wire.Unpack) != (len(asked) > 1) {
			t.Fatalf("%q: %v, but tried %q", name, out, asked)
		}
	})
}

func BenchmarkServeWire(b *testing.B) {
	var asked []string
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	q, w := new(wire.Query), new(wire.Reply)
	q.Parse(packet)
	q.Client = netip.MustParseAddrPort("192.0.2.9:53")
	static := serving(b, "autopath "+resolvConf(b, "search one.test two.test"), silent{})
	l, _ := (&settings{zones: []string{"."}}).lists()
	l.ask(pods{zone{nil, &asked}}, "pods", "")
	for name, h := range map[string]*AutoPath{"file": static, "plugin": {Next: silent{}, Zones: []string{"."}, lists: l}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.ServeWire(b.Context(), w, q)
			}
		})
	}
}

type silent struct{ zone }

func (silent) ServeWire(_ context.Context, w *wire.Reply, _ *wire.Query) wire.Outcome {
	w.Drop()
	return wire.Done
}

// upstream parks each query once, as forward does when it has asked.
type upstream struct {
	zone
	eventloop.Ending
}

func (u *upstream) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if q.Awaited() == nil {
		q.Await(u)
		return wire.Park
	}
	w.Begin(q)
	return wire.Done
}

// A query that was parked is answered as it was asked, though its client has got a list meanwhile: who was asked for it would
// be asked again.
func TestListOfParkedQuery(t *testing.T) {
	var search []string
	a := &AutoPath{Next: &upstream{}, Zones: []string{"."}, lists: &lists{
		zones: [][]byte{wire.Root}, of: func(request.Request) []string { return search }, prompt: true,
	}}
	packet, _ := new(dns.Msg).SetQuestion("www.one.test.", dns.TypeA).Pack()
	var q wire.Query
	var w wire.Reply
	w.Reset(nil)
	q.Parse(packet)
	if out := a.ServeWire(t.Context(), &w, &q); out != wire.Park {
		t.Fatal(out)
	}
	search = []string{"one.test.", ""}
	if out := a.ServeWire(t.Context(), &w, &q); out != wire.Done {
		t.Error(out)
	}
	q.Parse(packet)
	if out := a.ServeWire(t.Context(), &w, &q); out != wire.Unpack {
		t.Errorf("a new query: %v", out)
	}
}
