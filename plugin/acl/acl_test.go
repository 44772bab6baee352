package acl

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// source says in both lanes that it was asked.
type source struct{ asked *int }

func (s source) Name() string             { return "source" }
func (s source) WireSelf() plugin.Handler { return s }

func (s source) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	*s.asked++
	return 0, w.WriteMsg(new(dns.Msg).SetReply(r))
}

func (s source) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	*s.asked++
	w.Begin(q)
	w.SetWriter("source")
	return wire.Done
}

func serving(t testing.TB, corefile string, next plugin.Handler) ACL {
	t.Helper()
	c := caddy.NewTestController("dns", corefile)
	c.ServerBlockKeys = []string{"."}
	if err := setup(c); err != nil {
		t.Fatalf("%q: %v", corefile, err)
	}
	return dnsserver.GetConfig(c).Plugin[0](next).(ACL)
}

// parsed is query as it comes in the wire lane, from an address.
func parsed(t testing.TB, query *dns.Msg, from string) (*wire.Query, *wire.Reply) {
	t.Helper()
	packet, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	q, w := new(wire.Query), new(wire.Reply)
	if !q.Parse(packet) {
		t.Fatal("not eligible")
	}
	if from != "" {
		q.Client = netip.AddrPortFrom(netip.MustParseAddr(from).Unmap(), 4711)
	}
	w.Reset(make([]byte, 512))
	return q, w
}

// came tells what came of a query.
func came(m *dns.Msg, asked int) string {
	switch {
	case asked > 0:
		return "allow"
	case m == nil:
		return "drop"
	case m.Rcode == dns.RcodeRefused:
		return "block"
	case m.Rcode == dns.RcodeSuccess:
		return "filter"
	}
	return m.String()
}

func TestBothLanes(t *testing.T) {
	const zones = `
		acl sub.example.org {
			allow net 192.0.2.3
			block
		}
		acl example.org {
			drop net 192.0.2.4
			filter type TXT net 192.0.2.0/24
			block type MX SRV net *
			allow net 192.0.2.0/29
			block
		}`
	for _, tc := range []struct {
		corefile, from, name, qtype, want string
	}{
		{zones, "192.0.2.1", "www.example.org.", "A", "allow"},
		{zones, "192.0.2.1", "www.example.org.", "TXT", "filter"},
		{zones, "198.51.100.1", "www.example.org.", "TXT", "block"},
		{zones, "192.0.2.1", "www.example.org.", "MX", "block"},
		{zones, "192.0.2.1", "www.example.org.", "SRV", "block"},
		{zones, "192.0.2.4", "www.example.org.", "MX", "drop"},
		{zones, "192.0.2.9", "www.example.org.", "A", "block"},
		{zones, "192.0.2.7", "WWW.Example.ORG.", "A", "allow"},
		{zones, "192.0.2.8", "WWW.Example.ORG.", "A", "block"},
		{zones, "192.0.2.1", "www.sub.example.org.", "A", "block"},
		{zones, "192.0.2.3", "www.sub.example.org.", "MX", "allow"}, // by the first rule
		{zones, "192.0.2.3", "www.subexample.org.", "A", "allow"},
		{zones, "192.0.2.3", "subexample.org.", "MX", "allow"}, // no rule is for it
		{zones, "2001:db8::1", "example.org.", "A", "block"},

		{"acl {\n}", "192.0.2.1", "www.example.org.", "A", "allow"},
		{"acl", "192.0.2.1", "www.example.org.", "A", "allow"},
		{"acl {\nblock\n}", "192.0.2.1", ".", "NS", "block"},
		{"acl {\nblock type *\n}", "192.0.2.1", "www.example.org.", "NS", "block"},
		{"acl {\nblock type A\n}", "192.0.2.1", "www.example.org.", "AAAA", "allow"},
		{"acl {\nBlock TYPE A Net 192.0.2.1\n}", "192.0.2.1", "www.example.org.", "A", "block"},
		{"acl {\nblock net 192.0.2.1 type A\n}", "192.0.2.1", "www.example.org.", "A", "block"},
		{"acl {\nblock net 192.0.2.1 type A net 192.0.2.5\n}", "192.0.2.5", "www.example.org.", "A", "block"},
		{"acl {\nblock net 192.0.2.1 type A type NS\n}", "192.0.2.1", "www.example.org.", "NS", "block"},
		{"acl {\nblock net 192.0.2.1\n}", "192.0.2.2", "www.example.org.", "A", "allow"},
		{"acl {\nblock net 192.0.2.1\n}", "::ffff:192.0.2.1", "www.example.org.", "A", "block"},
		{"acl {\nblock net ::ffff:192.0.2.0/120\n}", "192.0.2.200", "www.example.org.", "A", "block"},
		{"acl {\nblock net ::/0\n}", "192.0.2.1", "www.example.org.", "A", "allow"},
		{"acl {\nblock net 0.0.0.0/0\n}", "2001:db8::1", "www.example.org.", "A", "allow"},
		{"acl {\nblock net ::/0\n}", "2001:db8::1", "www.example.org.", "A", "block"},
		{"acl {\nblock net fe80::1\n}", "fe80::1%eth0", "www.example.org.", "A", "block"},
		{"acl {\nallow net 2001:db8:abcd:0012::0/64\nblock net 2001:db8:abcd:0012::0/48\n}", "2001:db8:abcd:12::7", "example.", "A", "allow"},
		{"acl {\nallow net 2001:db8:abcd:0012::0/64\nblock net 2001:db8:abcd:0012::0/48\n}", "2001:db8:abcd:13::7", "example.", "A", "block"},
		{"acl a.example.org b.example.org {\nblock\n}", "192.0.2.1", "x.b.example.org.", "A", "block"},
		{"acl 192.0.2.0/24 {\nblock\n}", "192.0.2.1", "7.2.0.192.in-addr.arpa.", "PTR", "block"},
		{"acl {\nallow net 192.0.2.1\n}\nacl {\nblock\n}", "192.0.2.1", "www.example.org.", "A", "allow"},
		{"acl {\nallow net 192.0.2.1\n}\nacl {\nblock\n}", "192.0.2.2", "www.example.org.", "A", "block"},
	} {
		query := new(dns.Msg).SetQuestion(tc.name, dns.StringToType[tc.qtype])
		asked := 0
		a := serving(t, tc.corefile, source{&asked})
		addr, zone, _ := strings.Cut(tc.from, "%")
		rec := dnstest.NewRecorder(&test.ResponseWriter{RemoteIP: addr, Zone: zone})
		if rc, err := a.ServeDNS(t.Context(), rec, query); rc != 0 || err != nil {
			t.Errorf("%s: got %d, %v", tc.name, rc, err)
		}
		if got := came(rec.Msg, asked); got != tc.want {
			t.Errorf("%q: %s %s from %s, message lane: %s, want %s", tc.corefile, tc.name, tc.qtype, tc.from, got, tc.want)
		}

		asked = 0
		q, w := parsed(t, query, tc.from)
		out := a.ServeWire(t.Context(), w, q)
		var m *dns.Msg
		if w.Holds() {
			m, _ = w.Msg(query)
		}
		if got := came(m, asked); out != wire.Done || got != tc.want || (got == "drop") != w.Dropped() {
			t.Errorf("%q: %s %s from %s, wire lane: %v, %s, want %s", tc.corefile, tc.name, tc.qtype, tc.from, out, got, tc.want)
		}
		if asked == 0 && m != nil && w.Writer() != "acl" {
			t.Errorf("written by %q", w.Writer())
		}
	}
}

// What clients get, octet by octet, is the same in both lanes.
func TestReplies(t *testing.T) {
	for _, tc := range []struct {
		policy string
		size   uint16 // 0: no EDNS
		do     bool
		want   string // the sections, and the options
	}{
		{"block", 0, false, "REFUSED"},
		{"filter", 0, false, "NOERROR"},
		{"block", 1400, false, "REFUSED opt 15"},
		{"block", 1400, true, "REFUSED opt 15 do"},
		{"filter", 100, true, "NOERROR opt 17 do"},
		{"filter\nsoa 60", 0, false, "NOERROR example.org. 60 IN SOA example.org. . 1 60 60 60 60"},
		{"filter\nsoa 60", 1232, false, "NOERROR example.org. 60 IN SOA example.org. . 1 60 60 60 60 opt 17"},
		{"block\nsoa 60", 0, false, "REFUSED"},
	} {
		query := new(dns.Msg).SetQuestion("Www.example.org.", dns.TypeA)
		query.CheckingDisabled = true
		if tc.size > 0 {
			query.SetEdns0(tc.size, tc.do)
		}
		a := serving(t, "acl example.org {\n"+tc.policy+"\n}", nil)

		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		a.ServeDNS(t.Context(), rec, query)
		q, w := parsed(t, query, "192.0.2.1")
		a.ServeWire(t.Context(), w, q)
		fromWire := new(dns.Msg)
		if err := fromWire.Unpack(w.Finish(q, 1232)); err != nil {
			t.Fatal(err)
		}
		for lane, m := range map[string]*dns.Msg{"message": rec.Msg, "wire": fromWire} {
			got := dns.RcodeToString[m.Rcode]
			for _, rr := range m.Ns {
				got += " " + strings.ReplaceAll(rr.String(), "\t", " ")
			}
			if opt := m.IsEdns0(); opt != nil {
				got += " opt"
				for _, o := range opt.Option {
					got += " " + strings.Fields(o.String())[0]
				}
				if opt.Do() {
					got += " do"
				}
			}
			if got != tc.want {
				t.Errorf("%q, %s lane: got %q, want %q", tc.policy, lane, got, tc.want)
			}
			if !m.RecursionDesired || !m.CheckingDisabled || m.Authoritative || m.RecursionAvailable || m.Question[0] != query.Question[0] {
				t.Errorf("%q, %s lane: got %v", tc.policy, lane, m)
			}
		}
	}
}

// renamed is the writer of a plugin that looks up another name.
type renamed struct {
	dns.ResponseWriter
	asked string
}

func (w renamed) AskedName() string { return w.asked }

func TestAsked(t *testing.T) {
	for _, tc := range []struct{ corefile, asked, looked, want string }{
		{"acl secret.example.org {\nblock\n}", "secret.example.org.", "www.example.org.", "allow"},
		{"acl secret.example.org {\nblock\n}", "www.example.org.", "secret.example.org.", "block"},
		{"acl secret.example.org {\nblock\nasked\n}", "Secret.example.org.", "www.example.org.", "block"},
		{"acl secret.example.org {\nblock\nasked\n}", "www.example.org.", "secret.example.org.", "block"},
		{"acl secret.example.org {\nblock\nasked\n}", "www.example.org.", "www.example.net.", "allow"},
		{"acl example.net {\nallow\nasked\n}\nacl {\nblock\n}", "x.example.net.", "www.example.org.", "allow"},
		{"acl example.net {\nallow\n}\nacl {\nblock\n}", "x.example.net.", "www.example.org.", "block"},
	} {
		asked := 0
		a := serving(t, tc.corefile, source{&asked})
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		a.ServeDNS(t.Context(), renamed{rec, tc.asked}, new(dns.Msg).SetQuestion(tc.looked, dns.TypeA))
		if got := came(rec.Msg, asked); got != tc.want {
			t.Errorf("%q: %s instead of %s, message lane: %s, want %s", tc.corefile, tc.looked, tc.asked, got, tc.want)
		}

		asked = 0
		q, w := parsed(t, new(dns.Msg).SetQuestion(tc.asked, dns.TypeA), "192.0.2.1")
		mark := q.Mark()
		q.SetName(wire.MustName(tc.looked))
		a.ServeWire(t.Context(), w, q)
		q.Restore(mark)
		var m *dns.Msg
		if w.Holds() {
			m, _ = w.Msg(new(dns.Msg).SetQuestion(tc.asked, dns.TypeA))
		}
		if got := came(m, asked); got != tc.want {
			t.Errorf("%q: %s instead of %s, wire lane: %s, want %s", tc.corefile, tc.looked, tc.asked, got, tc.want)
		}
	}
}

// nobody is a client of which nothing is known.
type nobody struct{ test.ResponseWriter }

func (*nobody) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "@socket", Net: "unix"} }

func TestUnknownSource(t *testing.T) {
	out := logtest.Capture(t)
	asked := 0
	a := serving(t, "acl example.org {\nallow net 192.0.2.0/24\n}", source{&asked})
	query := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
	rec := dnstest.NewRecorder(&nobody{})
	a.ServeDNS(t.Context(), rec, query)
	q, w := parsed(t, query, "")
	a.ServeWire(t.Context(), w, q)
	if rec.Msg == nil || rec.Msg.Rcode != dns.RcodeRefused || w.Rcode() != wire.Refused || asked != 0 {
		t.Errorf("got %v and %d", rec.Msg, w.Rcode())
	}
	want := "[ERROR] plugin/acl: Blocking request. Unable to parse source address: "
	if got := out.String(); strings.Count(got, want) != 2 || !strings.Contains(got, want+"@socket\n") {
		t.Errorf("logged %q", got)
	}
	if a.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion("example.net.", dns.TypeA)); asked != 1 {
		t.Error("blocked for a name that no rule is for")
	}
}

func TestCounters(t *testing.T) {
	asked := 0
	a := serving(t, "acl example.org sub.example.org {\nallow type A\nblock type MX\nfilter type TXT\ndrop\n}", source{&asked})
	literal := a
	literal.counts = nil // as other programs make one
	read := func(vec *prometheus.CounterVec, labels ...string) float64 {
		return testutil.ToFloat64(vec.WithLabelValues(labels...))
	}
	for _, tc := range []struct {
		name, qtype string
		value       func() float64
	}{
		{"www.example.org.", "A", func() float64 { return read(RequestAllowCount, "", "") }},
		{"www.example.net.", "MX", func() float64 { return read(RequestAllowCount, "", "") }},
		{"www.example.org.", "MX", func() float64 { return read(RequestBlockCount, "", "example.org.", "") }},
		{"www.sub.example.org.", "TXT", func() float64 { return read(RequestFilterCount, "", "sub.example.org.", "") }},
		{"www.sub.example.org.", "SRV", func() float64 { return read(RequestDropCount, "", "sub.example.org.", "") }},
	} {
		before := tc.value()
		query := new(dns.Msg).SetQuestion(tc.name, dns.StringToType[tc.qtype])
		for _, h := range []ACL{a, literal} {
			h.ServeDNS(t.Context(), &test.ResponseWriter{}, query)
			q, w := parsed(t, query, "192.0.2.1")
			h.ServeWire(t.Context(), w, q)
		}
		if got := tc.value() - before; got != 4 {
			t.Errorf("%s %s: counted %v of 4", tc.name, tc.qtype, got)
		}
	}
	before := read(RequestAllowCount, "", "")
	a.Next = test.NextHandler(0, nil)
	q, w := parsed(t, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), "192.0.2.1")
	if out := a.ServeWire(t.Context(), w, q); out != wire.Unpack || read(RequestAllowCount, "", "") != before {
		t.Errorf("%v, and counted before it was done", out)
	}
}

func TestWithoutQuestion(t *testing.T) {
	a := serving(t, "acl", test.NextHandler(0, nil))
	if rc, err := a.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg)); rc != dns.RcodeServerFailure || err == nil {
		t.Errorf("got %d, %v", rc, err)
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

// An update that is filtered is refused: NOERROR would say that it is done (RFC 2136 §2.2).
func TestUpdateIsRefused(t *testing.T) {
	a := serving(t, "acl example.org {\nfilter\n}", nil)
	for _, tc := range []struct {
		m    *dns.Msg
		want int
	}{
		{new(dns.Msg).SetUpdate("example.org."), dns.RcodeRefused},
		{new(dns.Msg).SetQuestion("example.org.", dns.TypeSOA), dns.RcodeSuccess},
	} {
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		if _, err := a.ServeDNS(t.Context(), rec, tc.m); err != nil || rec.Msg == nil || rec.Msg.Rcode != tc.want {
			t.Errorf("%v: %v, %v", tc.m, err, rec.Msg)
		}
	}
}
