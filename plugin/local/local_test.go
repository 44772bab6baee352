package local

import (
	"errors"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

var errNext = errors.New("next")

const soaText = " 604800 IN SOA localhost. root.localhost. 1 0 0 0 604800"

func TestBothLanes(t *testing.T) {
	for _, tc := range []struct {
		name           string
		typ            uint16
		rcode          int
		answer, author string
		next           bool // passes on
		counted        float64
	}{
		{name: "localhost.", typ: dns.TypeA, answer: "localhost. 604800 IN A 127.0.0.1"},
		{name: "LocalHost.", typ: dns.TypeAAAA, answer: "LocalHost. 604800 IN AAAA ::1"},
		{name: "localhost.", typ: dns.TypeSOA, answer: "localhost." + soaText},
		{name: "localhost.", typ: dns.TypeNS, answer: "localhost. 604800 IN NS localhost."},
		{name: "localhost.", typ: dns.TypeMX, author: "localhost." + soaText},

		{name: "www.localhost.", typ: dns.TypeA, answer: "www.localhost. 604800 IN A 127.0.0.1", counted: 1},
		{name: "a.B.localhost.", typ: dns.TypeAAAA, answer: "a.B.localhost. 604800 IN AAAA ::1", counted: 1},
		{name: "www.localhost.", typ: dns.TypeSOA, author: "www.localhost." + soaText, counted: 1},
		{name: "localhost.Example.org.", typ: dns.TypeA, answer: "localhost.Example.org. 604800 IN A 127.0.0.1", counted: 1},
		{name: "localhost.example.org.", typ: dns.TypeTXT, author: "localhost.example.org." + soaText, counted: 1},

		{name: "1.0.0.127.in-addr.arpa.", typ: dns.TypePTR, answer: "1.0.0.127.in-addr.arpa. 604800 IN PTR localhost."},
		{name: "1.0.0.127.In-addr.arpa.", typ: dns.TypeA, author: "127.In-addr.arpa." + soaText},
		{name: "2.0.0.127.in-addr.arpa.", typ: dns.TypePTR, rcode: dns.RcodeNameError, author: "127.in-addr.arpa." + soaText},
		{name: "127.in-addr.arpa.", typ: dns.TypeSOA, answer: "127.in-addr.arpa." + soaText},
		{name: "127.in-addr.arpa.", typ: dns.TypeNS, answer: "127.in-addr.arpa. 604800 IN NS localhost."},
		{name: "127.in-addr.arpa.", typ: dns.TypeA, author: "127.in-addr.arpa." + soaText},
		{name: "0.in-addr.arpa.", typ: dns.TypeSOA, answer: "0.in-addr.arpa." + soaText},
		{name: "9.255.in-addr.arpa.", typ: dns.TypeSOA, rcode: dns.RcodeNameError, author: "255.in-addr.arpa." + soaText},

		{name: "www.example.org.", typ: dns.TypeA, next: true},
		{name: "localhosts.example.org.", typ: dns.TypeA, next: true},
		{name: "alocalhost.", typ: dns.TypeA, next: true},
		{name: "1.in-addr.arpa.", typ: dns.TypePTR, next: true},
		{name: "in-addr.arpa.", typ: dns.TypePTR, next: true},
		{name: "27.in-addr.arpa.", typ: dns.TypePTR, next: true},
		{name: ".", typ: dns.TypeNS, next: true},
	} {
		l := Local{Next: test.NextHandler(dns.RcodeRefused, errNext)}
		query := new(dns.Msg).SetQuestion(tc.name, tc.typ)
		before := testutil.ToFloat64(LocalhostCount)
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		rc, err := l.ServeDNS(t.Context(), rec, query)
		packet, _ := query.Pack()
		var q wire.Query
		var w wire.Reply
		w.Reset(make([]byte, 512))
		if !q.Parse(packet) {
			t.Fatal("not eligible")
		}
		out := l.ServeWire(t.Context(), &w, &q)
		if tc.next {
			if err != errNext || rc != dns.RcodeRefused || out != wire.Unpack {
				t.Errorf("%s: got %d, %v and %v", tc.name, rc, err, out)
			}
			continue
		}
		if err != nil || out != wire.Done || rc != tc.rcode || w.Writer() != "local" {
			t.Errorf("%s: got %d, %v and %v", tc.name, rc, err, out)
			continue
		}
		check(t, rec.Msg, tc.name, tc.rcode, tc.answer, tc.author)
		m, err := w.Msg(query)
		if err != nil {
			t.Fatal(err)
		}
		check(t, m, tc.name, tc.rcode, tc.answer, tc.author)
		if got := testutil.ToFloat64(LocalhostCount) - before; got != 2*tc.counted {
			t.Errorf("%s: counted %v, want %v", tc.name, got, 2*tc.counted)
		}
	}
}

func check(t *testing.T, m *dns.Msg, name string, rcode int, answer, author string) {
	t.Helper()
	show := func(rrs []dns.RR) (s string) {
		for _, rr := range rrs {
			s += strings.ReplaceAll(rr.String(), "\t", " ")
		}
		return s
	}
	if m.Rcode != rcode || !m.Authoritative || m.Question[0].Name != name {
		t.Errorf("%s: got header %v", name, m)
	}
	if a, n := show(m.Answer), show(m.Ns); a != answer || n != author {
		t.Errorf("%s:\n got %q %q\nwant %q %q", name, a, n, answer, author)
	}
}

func TestWhatPassesOn(t *testing.T) {
	next := test.NextHandler(dns.RcodeRefused, errNext)
	chaos := new(dns.Msg).SetQuestion("localhost.", dns.TypeA)
	chaos.Question[0].Qclass = dns.ClassCHAOS
	for _, tc := range []struct {
		l Local
		m *dns.Msg
	}{
		{Local{Next: next}, chaos},
		{Local{Next: next}, new(dns.Msg)},
		{Local{Next: next, noPrefix: true}, new(dns.Msg).SetQuestion("localhost.example.org.", dns.TypeA)},
	} {
		if _, err := tc.l.ServeDNS(t.Context(), &test.ResponseWriter{}, tc.m); err != errNext {
			t.Errorf("%v: got %v", tc.m, err)
		}
	}
	if p, _ := (Local{noPrefix: true}).place(wire.MustName("www.localhost.")); p != host {
		t.Errorf("without prefix, names below localhost are %d", p)
	}
}

func TestDebugLine(t *testing.T) {
	out := logtest.Capture(t)
	log.D.Set()
	defer log.D.Clear()
	Local{}.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("Localhost.example.org.", dns.TypeTXT))
	if got, want := out.String(), "[DEBUG] plugin/local: Intercepting localhost query for \"Localhost.example.org.\" TXT, from 10.240.0.1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input, err string
		off        bool
	}{
		{"local", "", false},
		{"local {\nlocalhost_prefix off\n}", "", true},
		{"local {\nlocalhost_prefix off\nlocalhost_prefix on\n}", "", false},
		{"local example.org", "Wrong argument count", false},
		{"local {\nfoo\n}", "plugin/local: Testfile:2 - Error during parsing: unknown property 'foo'", false},
		{"local {\nlocalhost_prefix maybe\n}", `Testfile:2 - Error during parsing: localhost_prefix expects 'on' or 'off', got "maybe"`, false},
		{"local {\nlocalhost_prefix\n}", "Wrong argument count", false},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
		if err == nil && dnsserver.GetConfig(c).Plugin[0](nil).(Local).noPrefix != tc.off {
			t.Errorf("%q: off is not %t", tc.input, tc.off)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	packet, _ := new(dns.Msg).SetQuestion("localhost.example.org.", dns.TypeMX).Pack()
	var q wire.Query
	var w wire.Reply
	buf := make([]byte, 512)
	if n := testing.AllocsPerRun(100, func() {
		q.Parse(packet)
		w.Reset(buf)
		Local{}.ServeWire(t.Context(), &w, &q)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

// Both lanes give the same reply to any packet.
func FuzzLanes(f *testing.F) {
	for _, name := range []string{"localhost.", "x.Localhost.", "localhost.x.", "1.0.0.127.in-addr.arpa.", "x.255.in-addr.arpa.", "example.org."} {
		packet, _ := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
		f.Add(packet)
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		var q wire.Query
		query := new(dns.Msg)
		if !q.Parse(packet) || query.Unpack(packet) != nil {
			return
		}
		var w wire.Reply
		w.Reset(make([]byte, 512))
		l := Local{Next: test.NextHandler(dns.RcodeRefused, nil)}
		out := l.ServeWire(t.Context(), &w, &q)
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		l.ServeDNS(t.Context(), rec, query)
		if (out == wire.Done) != (rec.Msg != nil) {
			t.Fatalf("%v: %v and %v", query, out, rec.Msg)
		}
		if out != wire.Done {
			return
		}
		m, err := w.Msg(query)
		if err != nil || m.String() != rec.Msg.String() {
			t.Fatalf("%v: %v and %v (%v)", query, m, rec.Msg, err)
		}
	})
}

func BenchmarkPlaceOfOtherNames(b *testing.B) {
	name := wire.MustName("www.default.svc.cluster.local.")
	b.ReportAllocs()
	for b.Loop() {
		Local{}.place(name)
	}
}
