package any

import (
	"errors"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

var errNext = errors.New("next")

const hinfoRecord = `Www.Example.org. 8482 IN HINFO "ANY obsoleted" "See RFC 8482"`

func TestBothLanes(t *testing.T) {
	a := Any{Next: test.NextHandler(dns.RcodeRefused, errNext)}
	for _, class := range []uint16{dns.ClassINET, dns.ClassCHAOS} {
		query := new(dns.Msg).SetQuestion("Www.Example.org.", dns.TypeANY)
		query.Question[0].Qclass = class
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		if rc, err := a.ServeDNS(t.Context(), rec, query); rc != dns.RcodeSuccess || err != nil {
			t.Fatalf("got %d, %v", rc, err)
		}
		check(t, rec.Msg)

		var q wire.Query
		var w wire.Reply
		w.Reset(make([]byte, 512))
		if err := q.SetMsg(query, wire.Peer{}); err != nil {
			t.Fatal(err)
		}
		if out := a.ServeWire(t.Context(), &w, &q); out != wire.Done || w.Writer() != "any" {
			t.Errorf("got %v by %q", out, w.Writer())
		}
		m, err := w.Msg(query)
		if err != nil {
			t.Fatal(err)
		}
		check(t, m)
	}
	for _, typ := range []uint16{dns.TypeA, dns.TypeHINFO, dns.TypeAXFR} {
		query := new(dns.Msg).SetQuestion("www.example.org.", typ)
		if rc, err := a.ServeDNS(t.Context(), &test.ResponseWriter{}, query); rc != dns.RcodeRefused || err != errNext {
			t.Errorf("type %d: got %d, %v", typ, rc, err)
		}
		var q wire.Query
		q.SetMsg(query, wire.Peer{})
		if out := a.ServeWire(t.Context(), new(wire.Reply), &q); out != wire.Unpack {
			t.Errorf("type %d: got %v", typ, out)
		}
	}
	if _, err := a.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg)); err != errNext {
		t.Errorf("no question: got %v", err)
	}
}

func check(t *testing.T, m *dns.Msg) {
	t.Helper()
	if len(m.Answer) != 1 || strings.ReplaceAll(m.Answer[0].String(), "\t", " ") != hinfoRecord || m.Authoritative || m.Rcode != 0 {
		t.Errorf("got %v", m)
	}
}

func TestSetup(t *testing.T) {
	for input, wantErr := range map[string]string{
		"any":             "",
		"any example.org": "Wrong argument count or unexpected line ending after 'example.org'",
		"any { foo }":     "unknown property 'foo'",
		"any {\n}":        "Testfile:1 - Error during parsing: Unexpected token '{', expecting argument",
	} {
		c := caddy.NewTestController("dns", input)
		err := setup(c)
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%q: got error %v, want %q", input, err, wantErr)
		}
		if n := len(dnsserver.GetConfig(c).Plugin); (n == 1) != (wantErr == "") {
			t.Errorf("%q: %d plugins", input, n)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
