package chaos

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

var errNext = errors.New("next")

func ask(name string, typ, class uint16) *dns.Msg {
	m := new(dns.Msg).SetQuestion(name, typ)
	m.Question[0].Qclass = class
	return m
}

func TestServeDNS(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	long := strings.Repeat("x", 300)
	for _, tc := range []struct {
		chaos Chaos
		name  string
		want  []string // texts; nil if the query passes on
	}{
		{Chaos{Version: "1"}, "version.bind.", []string{"1"}},
		{Chaos{Version: "1"}, "Version.Server.", []string{"1"}},
		{Chaos{Version: long}, "version.bind.", []string{long[:255]}},
		{Chaos{Authors: []string{"a", long}}, "authors.bind.", []string{"a", long[:255]}},
		{Chaos{}, "authors.bind.", []string{}},
		{Chaos{}, "hostname.bind.", []string{host}},
		{Chaos{}, "ID.server.", []string{host}},
		{Chaos{noHostname: true}, "hostname.bind.", nil},
		{Chaos{noHostname: true}, "id.server.", nil},
		{Chaos{Version: "1"}, "other.bind.", nil},
		{Chaos{Version: "1"}, "bind.", nil},
	} {
		tc.chaos.Next = test.NextHandler(dns.RcodeRefused, errNext)
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		rc, err := tc.chaos.ServeDNS(t.Context(), rec, ask(tc.name, dns.TypeTXT, dns.ClassCHAOS))
		if tc.want == nil {
			if rc != dns.RcodeRefused || err != errNext || rec.Msg != nil {
				t.Errorf("%s: got %d, %v, %v", tc.name, rc, err, rec.Msg)
			}
			continue
		}
		if rc != dns.RcodeSuccess || err != nil || rec.Msg == nil {
			t.Errorf("%s: got %d, %v, %v", tc.name, rc, err, rec.Msg)
			continue
		}
		var got []string
		for _, rr := range rec.Msg.Answer {
			h := rr.Header()
			if h.Name != tc.name || h.Class != dns.ClassCHAOS || h.Ttl != 0 || rec.Msg.Authoritative {
				t.Errorf("got %v", rec.Msg)
			}
			got = append(got, rr.(*dns.TXT).Txt...)
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestWhatPassesOn(t *testing.T) {
	c := Chaos{Version: "1", Next: test.NextHandler(dns.RcodeRefused, errNext)}
	for _, m := range []*dns.Msg{
		ask("version.bind.", dns.TypeTXT, dns.ClassINET),
		ask("version.bind.", dns.TypeTXT, dns.ClassANY),
		ask("version.bind.", dns.TypeA, dns.ClassCHAOS),
		ask("version.bind.", dns.TypeANY, dns.ClassCHAOS),
		new(dns.Msg),
	} {
		if _, err := c.ServeDNS(t.Context(), &test.ResponseWriter{}, m); err != errNext {
			t.Errorf("%v: got %v", m, err)
		}
	}
}

func TestAuthorsAreShuffled(t *testing.T) {
	c := Chaos{Authors: []string{"a", "b", "c", "d", "e"}}
	orders := map[string]bool{}
	for range 200 {
		orders[strings.Join(c.texts("authors.bind."), "")] = true
	}
	if len(orders) < 20 { // of 120
		t.Errorf("only %d orders", len(orders))
	}
	if !slices.Equal(c.Authors, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("the list itself was changed: %q", c.Authors)
	}
}

func TestServeWire(t *testing.T) {
	done := doneHandler{test.NextHandler(0, nil)}
	for class, want := range map[uint16]wire.Outcome{dns.ClassINET: wire.Done, dns.ClassCHAOS: wire.Unpack} {
		var q wire.Query
		if err := q.SetMsg(ask("version.bind.", dns.TypeTXT, class), wire.Peer{}); err != nil {
			t.Fatal(err)
		}
		if got := (Chaos{Next: done}).ServeWire(t.Context(), new(wire.Reply), &q); got != want {
			t.Errorf("class %d: got %v, want %v", class, got, want)
		}
	}
}

type doneHandler struct{ test.Handler }

func (doneHandler) ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome {
	return wire.Done
}
func (d doneHandler) WireSelf() plugin.Handler { return d }

func TestSetup(t *testing.T) {
	caddy.AppName, caddy.AppVersion = "CoreDNS", "1.2.3"
	for _, tc := range []struct {
		input, version string
		authors        []string
		noHostname     bool
		err            string
	}{
		{input: "chaos", version: "CoreDNS-1.2.3", authors: Owners},
		{input: "chaos v2", version: "v2", authors: Owners},
		{input: `chaos v3 "Some Body" A "Some Body"`, version: "v3", authors: []string{"A", "Some Body"}},
		{input: "chaos v2\nchaos v3 x", version: "v2", authors: Owners},
		{input: "chaos {\nhostname off\n}", version: "CoreDNS-1.2.3", authors: Owners, noHostname: true},
		{input: "chaos v2 {\nunknown\n}", err: "plugin/chaos: Testfile:2 - Error during parsing: unknown property 'unknown'"},
		{input: "chaos v2 {\nhostname maybe\n}", err: "hostname 'maybe' is not supported"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tc.input, err)
			continue
		}
		got := dnsserver.GetConfig(c).Plugin[0](nil).(Chaos)
		if got.Version != tc.version || !slices.Equal(got.Authors, tc.authors) || got.noHostname != tc.noHostname {
			t.Errorf("%q: got %+v", tc.input, got)
		}
	}
}

func TestOwners(t *testing.T) {
	if len(Owners) == 0 || !slices.IsSorted(Owners) {
		t.Errorf("got %q", Owners)
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
