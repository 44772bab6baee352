package plugin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const zone = "example.org."

var errName = errors.New("no such name")

// backend is a ServiceBackend over maps by lower-case name. Keys of services are of the form /skydns/org/example/x.
type backend struct {
	services map[string][]msg.Service
	reverse  map[string][]msg.Service
	outside  map[string]*dns.Msg // by name and type, for Lookup
	asked    []string            // names that Services was asked for
	lookups  int
	err      error
}

func (b *backend) Services(_ context.Context, state request.Request, exact bool, _ plugin.Options) ([]msg.Service, error) {
	b.asked = append(b.asked, fmt.Sprintf("%s exact=%t", state.Name(), exact))
	if b.err != nil {
		return nil, b.err
	}
	s, ok := b.services[state.Name()]
	if !ok {
		return nil, errName
	}
	return s, nil
}

func (b *backend) Reverse(_ context.Context, state request.Request, _ bool, _ plugin.Options) ([]msg.Service, error) {
	return b.reverse[state.Name()], b.err
}

func (b *backend) Lookup(_ context.Context, _ request.Request, name string, typ uint16) (*dns.Msg, error) {
	b.lookups++
	m, ok := b.outside[name+" "+dns.TypeToString[typ]]
	if !ok {
		return nil, errors.New("no reply from outside")
	}
	return m, nil
}

func (b *backend) Records(context.Context, request.Request, bool) ([]msg.Service, error) {
	return nil, nil
}
func (b *backend) IsNameError(err error) bool    { return err == errName }
func (b *backend) Serial(request.Request) uint32 { return 7 }
func (b *backend) MinTTL(request.Request) uint32 { return 3600 }

// ask is the query for name and type.
func ask(name string, typ uint16) request.Request {
	m := new(dns.Msg).SetQuestion(name, typ)
	return request.Request{Req: m, W: &test.ResponseWriter{}, Zone: zone}
}

// show is records as lines, tabs as blanks.
func show(rrs []dns.RR) (lines []string) {
	for _, rr := range rrs {
		lines = append(lines, strings.ReplaceAll(rr.String(), "\t", " "))
	}
	return lines
}

func same(t *testing.T, what string, got []dns.RR, want ...string) {
	t.Helper()
	if g := show(got); !slices.Equal(g, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(g, "\n     "), strings.Join(want, "\n     "))
	}
}

func reply(truncated bool, rrs ...dns.RR) *dns.Msg {
	return &dns.Msg{MsgHdr: dns.MsgHdr{Truncated: truncated}, Answer: rrs}
}

func TestAddresses(t *testing.T) {
	b := &backend{
		services: map[string][]msg.Service{
			"example.org.":          {{Host: "192.0.2.99", TTL: 5}},
			"apex.dns.example.org.": {{Host: "192.0.2.1", TTL: 5}},
			"host.example.org.": {
				{Host: "192.0.2.2", TTL: 5}, {Host: "::ffff:192.0.2.2", TTL: 9}, {Host: "2001:db8::2", TTL: 5},
				{Text: "just a text"}, {}, {Host: "192.0.2.3", Text: "host wins", TTL: 5},
			},
			"alias.example.org.":    {{Host: "host.example.org", TTL: 5}, {Host: "host.example.org", TTL: 6}},
			"empty.example.org.":    {{Host: "text.example.org", TTL: 5}},
			"text.example.org.":     {{Text: "one", TTL: 5}, {Text: "two", TTL: 5}, {Text: "one", TTL: 5}},
			"dangling.example.org.": {{Host: "nothing.example.org", TTL: 5}},
			"self.example.org.":     {{Host: "self.example.org"}, {Host: "below.self.example.org"}},
			"ping.example.org.":     {{Host: "pong.example.org", TTL: 5}},
			"pong.example.org.":     {{Host: "ping.example.org", TTL: 5}},
			"away.example.org.":     {{Host: "www.example.net", TTL: 5}},
			"gone.example.org.":     {{Host: "gone.example.net", TTL: 5}},
			"silent.example.org.":   {{Host: "silent.example.net", TTL: 5}},
			"none.example.org.":     {{Host: "none.example.net", TTL: 5}},
			"child.example.org.":    {{Host: "app.dyn.example.org", TTL: 5}},
			"chain.example.org.":    {{Host: "child.example.org", TTL: 5}},
			"lost.example.org.":     {{Host: "lost.dyn.example.org", TTL: 5}},
		},
		outside: map[string]*dns.Msg{
			"app.dyn.example.org. A":    reply(true, test.CNAME("app.dyn.example.org. 60 IN CNAME a.dyn.example.org."), test.A("a.dyn.example.org. 60 IN A 192.0.2.42")),
			"app.dyn.example.org. AAAA": reply(false),
			"lost.dyn.example.org. A":   {MsgHdr: dns.MsgHdr{Rcode: dns.RcodeNameError}, Answer: []dns.RR{test.CNAME("lost.dyn.example.org. 60 IN CNAME x.dyn.example.org.")}},
			"www.example.net. A":        reply(true, test.A("www.example.net. 60 IN A 192.0.2.80")),
			"www.example.net. TXT":      reply(false, test.TXT("www.example.net. 60 IN TXT away")),
			"none.example.net. A":       reply(false),
			"silent.example.net. A":     nil,
		},
	}
	for _, tc := range []struct {
		name      string
		typ       uint16
		want      []string
		truncated bool
	}{
		{name: "host.example.org.", typ: dns.TypeA, want: []string{"host.example.org. 5 IN A 192.0.2.2", "host.example.org. 5 IN A 192.0.2.3"}},
		{name: "HOST.example.org.", typ: dns.TypeAAAA, want: []string{"HOST.example.org. 5 IN AAAA 2001:db8::2"}},
		{name: "Example.org.", typ: dns.TypeA, want: []string{"Example.org. 5 IN A 192.0.2.1"}},
		{name: "alias.example.org.", typ: dns.TypeA, want: []string{
			"alias.example.org. 5 IN CNAME host.example.org.", "host.example.org. 5 IN A 192.0.2.2", "host.example.org. 5 IN A 192.0.2.3"}},
		{name: "empty.example.org.", typ: dns.TypeA},
		{name: "empty.example.org.", typ: dns.TypeTXT, want: []string{
			"empty.example.org. 5 IN CNAME text.example.org.", `text.example.org. 5 IN TXT "one"`, `text.example.org. 5 IN TXT "two"`}},
		{name: "dangling.example.org.", typ: dns.TypeA},
		{name: "self.example.org.", typ: dns.TypeA},
		{name: "ping.example.org.", typ: dns.TypeA},
		{name: "away.example.org.", typ: dns.TypeA, truncated: true, want: []string{
			"away.example.org. 5 IN CNAME www.example.net.", "www.example.net. 60 IN A 192.0.2.80"}},
		{name: "away.example.org.", typ: dns.TypeTXT, want: []string{
			"away.example.org. 5 IN CNAME www.example.net.", `www.example.net. 60 IN TXT "away"`}},
		{name: "gone.example.org.", typ: dns.TypeA},
		{name: "silent.example.org.", typ: dns.TypeA},
		{name: "none.example.org.", typ: dns.TypeA, want: []string{"none.example.org. 5 IN CNAME none.example.net."}},
		{name: "child.example.org.", typ: dns.TypeA, truncated: true, want: []string{
			"child.example.org. 5 IN CNAME app.dyn.example.org.", "app.dyn.example.org. 60 IN CNAME a.dyn.example.org.", "a.dyn.example.org. 60 IN A 192.0.2.42"}},
		{name: "chain.example.org.", typ: dns.TypeA, truncated: true, want: []string{
			"chain.example.org. 5 IN CNAME child.example.org.", "child.example.org. 5 IN CNAME app.dyn.example.org.",
			"app.dyn.example.org. 60 IN CNAME a.dyn.example.org.", "a.dyn.example.org. 60 IN A 192.0.2.42"}},
		{name: "child.example.org.", typ: dns.TypeAAAA},
		{name: "lost.example.org.", typ: dns.TypeA},
	} {
		find := map[uint16]func(context.Context, plugin.ServiceBackend, string, request.Request, []dns.RR, plugin.Options) ([]dns.RR, bool, error){
			dns.TypeA: plugin.A, dns.TypeAAAA: plugin.AAAA, dns.TypeTXT: plugin.TXT,
		}[tc.typ]
		state := ask(tc.name, tc.typ)
		got, truncated, err := find(t.Context(), b, zone, state, nil, plugin.Options{})
		if err != nil || truncated != tc.truncated {
			t.Errorf("%s: truncated %t, error %v", tc.name, truncated, err)
		}
		same(t, tc.name+" "+dns.TypeToString[tc.typ], got, tc.want...)
		if q := state.Req.Question[0]; q.Name != tc.name || q.Qtype != tc.typ {
			t.Errorf("the query was changed to %v", q)
		}
	}
}

func TestApexFallsBackOnNameErrorOnly(t *testing.T) {
	b := &backend{services: map[string][]msg.Service{zone: {{Host: "192.0.2.99", TTL: 5}}}}
	got, _, err := plugin.A(t.Context(), b, zone, ask(zone, dns.TypeA), nil, plugin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "apex", got, "example.org. 5 IN A 192.0.2.99")

	b = &backend{err: errors.New("backend is down")}
	if _, _, err := plugin.A(t.Context(), b, zone, ask(zone, dns.TypeA), nil, plugin.Options{}); err != b.err {
		t.Errorf("got error %v", err)
	}
	if want := []string{"apex.dns.example.org. exact=false"}; !slices.Equal(b.asked, want) {
		t.Errorf("asked %q, want %q", b.asked, want)
	}
}

func TestAliasLoopEndsAtOnce(t *testing.T) {
	b := &backend{services: map[string][]msg.Service{
		"ping.example.org.": {{Host: "pong.example.org"}},
		"pong.example.org.": {{Host: "ping.example.org"}},
	}}
	got, _, err := plugin.A(t.Context(), b, zone, ask("ping.example.org.", dns.TypeA), nil, plugin.Options{})
	if err != nil || len(got) > 0 || len(b.asked) > 3 {
		t.Errorf("got %q, %v after asking for %q", show(got), err, b.asked)
	}
}

// Names of the zone that are nowhere are not asked for without end.
func TestNamesThatAreNowhere(t *testing.T) {
	b := &backend{services: map[string][]msg.Service{}, outside: map[string]*dns.Msg{}}
	for i := range 40 {
		b.services["many.example.org."] = append(b.services["many.example.org."], msg.Service{Host: fmt.Sprintf("n%d.dyn.example.org", i), Port: 80, TTL: 5})
	}
	if got, _, err := plugin.A(t.Context(), b, zone, ask("many.example.org.", dns.TypeA), nil, plugin.Options{}); err != nil || len(got) != 0 || b.lookups != 10 {
		t.Errorf("%d lookups, %q, %v", b.lookups, show(got), err)
	}
	b.lookups = 0
	if got, extra, err := plugin.SRV(t.Context(), b, zone, ask("many.example.org.", dns.TypeSRV), plugin.Options{}); err != nil || len(got) != 40 || len(extra) != 0 || b.lookups != 10 {
		t.Errorf("%d lookups, %q, %q, %v", b.lookups, show(got), show(extra), err)
	}
}

// Where each alias leads to several others, a question costs no more than a chain of them for each that stands at its name.
func TestAliasesThatBranch(t *testing.T) {
	b := &backend{services: map[string][]msg.Service{}}
	names := strings.Split("a b c d e f g h", " ")
	for _, n := range names {
		for _, to := range names {
			b.services[n+".example.org."] = append(b.services[n+".example.org."], msg.Service{Host: to + ".example.org", TTL: 5})
		}
		b.services["_all.example.org."] = append(b.services["_all.example.org."], msg.Service{Host: n + ".example.org", Port: 80, TTL: 5})
	}
	if _, _, err := plugin.A(t.Context(), b, zone, ask("a.example.org.", dns.TypeA), nil, plugin.Options{}); err != nil || len(b.asked) > 300 {
		t.Errorf("%v, %d names were looked up", err, len(b.asked))
	}
	b.asked = nil
	if _, _, err := plugin.SRV(t.Context(), b, zone, ask("_all.example.org.", dns.TypeSRV), plugin.Options{}); err != nil || len(b.asked) > 500 {
		t.Errorf("SRV: %v, %d names were looked up", err, len(b.asked))
	}
}

func TestLongChainOfAliases(t *testing.T) {
	b := &backend{services: map[string][]msg.Service{}}
	for i := range 20 {
		b.services[fmt.Sprintf("a%d.example.org.", i)] = []msg.Service{{Host: fmt.Sprintf("a%d.example.org", i+1), TTL: 5}}
	}
	for length, want := range map[int]int{11: 12, 12: 0} { // an alias may have ten aliases before it
		b.services[fmt.Sprintf("a%d.example.org.", length)] = []msg.Service{{Host: "192.0.2.1", TTL: 5}}
		got, _, err := plugin.A(t.Context(), b, zone, ask("a0.example.org.", dns.TypeA), nil, plugin.Options{})
		if err != nil || len(got) != want {
			t.Errorf("%d aliases: %d records, want %d (%v)", length, len(got), want, err)
		}
		b.services[fmt.Sprintf("a%d.example.org.", length)] = []msg.Service{{Host: fmt.Sprintf("a%d.example.org", length+1), TTL: 5}}
	}
}

func TestCNAMEAndPTR(t *testing.T) {
	b := &backend{
		services: map[string][]msg.Service{
			"alias.example.org.": {{Host: "host.example.org", Text: "and a text", TTL: 5}, {Host: "other.example.org"}},
			"host.example.org.":  {{Host: "192.0.2.1"}},
			"text.example.org.":  {{Text: "text"}},
			"none.example.org.":  {},
		},
		reverse: map[string][]msg.Service{"1.2.0.192.in-addr.arpa.": {
			{Host: "a.example.org", TTL: 5}, {Host: "192.0.2.1"}, {Host: "b.example.org", TTL: 5}, {Host: "a.example.org", TTL: 9},
		}},
	}
	for name, want := range map[string][]string{
		"alias.example.org.": {"alias.example.org. 5 IN CNAME host.example.org."},
		"host.example.org.":  nil, "text.example.org.": nil, "none.example.org.": nil,
	} {
		got, err := plugin.CNAME(t.Context(), b, zone, ask(name, dns.TypeCNAME), plugin.Options{})
		if err != nil {
			t.Error(err)
		}
		same(t, name, got, want...)
	}
	if b.asked[0][len(b.asked[0])-len("exact=true"):] != "exact=true" {
		t.Errorf("asked %q", b.asked)
	}
	got, err := plugin.PTR(t.Context(), b, zone, ask("1.2.0.192.in-addr.arpa.", dns.TypePTR), plugin.Options{})
	if err != nil {
		t.Error(err)
	}
	same(t, "PTR", got, "1.2.0.192.in-addr.arpa. 5 IN PTR a.example.org.", "1.2.0.192.in-addr.arpa. 5 IN PTR b.example.org.")
}

func TestSRVWeights(t *testing.T) {
	for _, tc := range []struct {
		weights []int
		want    []uint16
	}{
		{[]int{0}, []uint16{100}},
		{[]int{49}, []uint16{100}},
		{[]int{0, 0, 0}, []uint16{33, 33, 33}},
		{[]int{100, 300}, []uint16{25, 75}},
		{[]int{1, 9999}, []uint16{1, 99}},
		{[]int{0, 50}, []uint16{66, 33}},
		{[]int{-5, 100}, []uint16{50, 50}},
		// Neither a hundredfold nor the sum may be more than an int holds.
		{[]int{math.MaxInt, 1}, []uint16{99, 1}},
		{[]int{math.MaxInt/2 + 1, math.MaxInt/2 + 1, math.MaxInt/2 + 1, math.MaxInt/2 + 1}, []uint16{25, 25, 25, 25}},
	} {
		b := &backend{services: map[string][]msg.Service{}}
		for i, w := range tc.weights {
			b.services["srv.example.org."] = append(b.services["srv.example.org."],
				msg.Service{Host: "192.0.2.1", Port: 80 + i, Weight: w, Key: fmt.Sprintf("/skydns/org/example/srv/x%d", i)})
		}
		got, _, err := plugin.SRV(t.Context(), b, zone, ask("srv.example.org.", dns.TypeSRV), plugin.Options{})
		if err != nil || len(got) != len(tc.want) {
			t.Fatal(got, err)
		}
		for i, rr := range got {
			if w := rr.(*dns.SRV).Weight; w != tc.want[i] {
				t.Errorf("%v: weight %d is %d, want %d", tc.weights, i, w, tc.want[i])
			}
		}
	}
}

func TestSRVTargets(t *testing.T) {
	b := &backend{
		services: map[string][]msg.Service{
			"srv.example.org.": {
				{Host: "192.0.2.1", Port: 80, TTL: 5, Key: "/skydns/org/example/srv/a"},
				{Host: "192.0.2.1", Port: 80, TTL: 5, Key: "/skydns/org/example/srv/a"},
				{Host: "2001:db8::1", Port: 81, TTL: 5, Key: "/skydns/org/example/srv/a"},
				{Host: "192.0.2.4", Port: -1, TTL: 5, Key: "/skydns/org/example/srv/d"},
				{Host: "192.0.2.5", Port: 80, TTL: 5, TargetStrip: 1, Key: "/skydns/org/example/srv/e", Priority: 20},
				{Host: "in.example.org", Port: 80, TTL: 5, Priority: 10},
				{Host: "in.example.org", Port: 80, TTL: 5, Priority: 10},
				{Host: "out.example.net", Port: 80, TTL: 5, Priority: 30},
				{Host: "app.dyn.example.org", Port: 80, TTL: 5, Priority: 40},
				{Text: "no host"},
			},
			"in.example.org.":   {{Host: "host.example.org", TTL: 5}},
			"host.example.org.": {{Host: "192.0.2.7", TTL: 5}, {Host: "2001:db8::7", TTL: 5}},
		},
		outside: map[string]*dns.Msg{
			"app.dyn.example.org. A": reply(false, test.A("app.dyn.example.org. 60 IN A 192.0.2.42")),
			"out.example.net. A":     reply(false, test.CNAME("out.example.net. 60 IN CNAME real.example.net."), test.A("real.example.net. 60 IN A 192.0.2.80")),
			"out.example.net. AAAA": reply(false, test.CNAME("out.example.net. 60 IN CNAME real.example.net."),
				test.AAAA("real.example.net. 60 IN AAAA 2001:db8::80")),
		},
	}
	got, extra, err := plugin.SRV(t.Context(), b, zone, ask("srv.example.org.", dns.TypeSRV), plugin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "answer", got,
		"srv.example.org. 5 IN SRV 0 20 80 a.srv.example.org.",
		"srv.example.org. 5 IN SRV 0 20 81 a.srv.example.org.",
		"srv.example.org. 5 IN SRV 20 100 80 srv.example.org.",
		"srv.example.org. 5 IN SRV 10 50 80 in.example.org.",
		"srv.example.org. 5 IN SRV 10 50 80 in.example.org.",
		"srv.example.org. 5 IN SRV 30 100 80 out.example.net.",
		"srv.example.org. 5 IN SRV 40 100 80 app.dyn.example.org.")
	same(t, "extra", extra,
		"a.srv.example.org. 5 IN A 192.0.2.1",
		"a.srv.example.org. 5 IN AAAA 2001:db8::1",
		"srv.example.org. 5 IN A 192.0.2.5",
		"in.example.org. 5 IN CNAME host.example.org.",
		"host.example.org. 5 IN A 192.0.2.7",
		"host.example.org. 5 IN AAAA 2001:db8::7",
		"out.example.net. 60 IN CNAME real.example.net.",
		"real.example.net. 60 IN A 192.0.2.80",
		"real.example.net. 60 IN AAAA 2001:db8::80",
		"app.dyn.example.org. 60 IN A 192.0.2.42")
}

func TestMX(t *testing.T) {
	b := &backend{
		services: map[string][]msg.Service{
			"example.org.": {
				{Host: "192.0.2.1", Mail: true, Priority: 10, TTL: 5, Key: "/skydns/org/example/mx/a"},
				{Host: "192.0.2.2", Mail: true, Priority: 10, TTL: 5, Key: "/skydns/org/example/mx/a"},
				{Host: "192.0.2.3", TTL: 5, Key: "/skydns/org/example/www"},
				{Host: "mail.example.org", Mail: true, Priority: 20, TTL: 5},
			},
			"mail.example.org.": {{Host: "2001:db8::7", TTL: 5}},
		},
	}
	got, extra, err := plugin.MX(t.Context(), b, zone, ask("example.org.", dns.TypeMX), plugin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "answer", got, "example.org. 5 IN MX 10 a.mx.example.org.", "example.org. 5 IN MX 20 mail.example.org.")
	same(t, "extra", extra, "a.mx.example.org. 5 IN A 192.0.2.1", "a.mx.example.org. 5 IN A 192.0.2.2", "mail.example.org. 5 IN AAAA 2001:db8::7")
}

func TestNS(t *testing.T) {
	const at = "ns.dns.example.org."
	b := &backend{services: map[string][]msg.Service{at: {
		{Host: "192.0.2.53", TTL: 5, Key: "/skydns/org/example/dns/ns/a"},
		{Host: "2001:db8::53", TTL: 5, Key: "/skydns/org/example/dns/ns/a"},
	}}}
	got, extra, err := plugin.NS(t.Context(), b, zone, ask("Example.org.", dns.TypeNS), plugin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "answer", got, "Example.org. 5 IN NS a.ns.dns.example.org.")
	same(t, "extra", extra, "a.ns.dns.example.org. 5 IN A 192.0.2.53", "a.ns.dns.example.org. 5 IN AAAA 2001:db8::53")

	b.services[at][1].Host = "ns.example.net"
	_, _, err = plugin.NS(t.Context(), b, zone, ask(zone, dns.TypeNS), plugin.Options{})
	if err == nil || err.Error() != "NS record must be an IP address: ns.example.net" {
		t.Errorf("got error %v", err)
	}
	b.err = errName
	if _, _, err = plugin.NS(t.Context(), b, zone, ask(zone, dns.TypeNS), plugin.Options{}); err != errName {
		t.Errorf("got error %v", err)
	}
}

func TestSOAAndBackendError(t *testing.T) {
	const soa = "example.org. 300 IN SOA ns.dns.example.org. hostmaster.example.org. 7 7200 1800 86400 3600"
	got, err := plugin.SOA(t.Context(), &backend{}, zone, request.Request{}, plugin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "SOA", got, soa)

	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	state := ask("nothing.example.org.", dns.TypeA)
	state.W = rec
	rcode, err := plugin.BackendError(t.Context(), &backend{}, zone, dns.RcodeNameError, state, errName, plugin.Options{})
	if rcode != dns.RcodeSuccess || err != errName {
		t.Errorf("got %d, %v", rcode, err)
	}
	if rec.Msg.Rcode != dns.RcodeNameError || !rec.Msg.Authoritative || rec.Msg.Question[0].Name != "nothing.example.org." {
		t.Errorf("got reply %v", rec.Msg)
	}
	same(t, "authority", rec.Msg.Ns, soa)
}

// many is a backend in which names lead to very many others.
func many(n int) *backend {
	b := &backend{services: map[string][]msg.Service{}, outside: map[string]*dns.Msg{}}
	for i := range n {
		host := fmt.Sprintf("n%d.example.org", i)
		b.services["same.example.org."] = append(b.services["same.example.org."], msg.Service{Host: "Loop.example.org", TTL: 5})
		b.services["loop.example.org."] = append(b.services["loop.example.org."], msg.Service{Host: "loop.example.org", TTL: 5})
		b.services["all.example.org."] = append(b.services["all.example.org."], msg.Service{Host: host, Port: 80 + i, Mail: true, TTL: 5})
		b.services[host+"."] = []msg.Service{{Host: fmt.Sprintf("10.1.%d.%d", i/250, i%250), TTL: 5}}
	}
	return b
}

// A target that has nothing is looked up once, however many aliases lead to it.
func TestManyAliasesToOneTarget(t *testing.T) {
	b := many(300)
	if got, _, err := plugin.A(t.Context(), b, zone, ask("same.example.org.", dns.TypeA), nil, plugin.Options{}); err != nil || len(got) > 0 || len(b.asked) != 2 {
		t.Errorf("%d names were looked up, %q, %v", len(b.asked), show(got), err)
	}
}

// Names are not looked up for records that no message has room for, and clients miss none of them.
func TestNoRoomForTargets(t *testing.T) {
	for _, n := range []int{100, 1500, 1700, 2000, 5000} {
		b := many(n)
		for _, typ := range []uint16{dns.TypeA, dns.TypeSRV, dns.TypeMX} {
			b.asked = nil
			state := ask("all.example.org.", typ)
			m := new(dns.Msg).SetReply(state.Req)
			switch typ {
			case dns.TypeA:
				m.Answer, _, _ = plugin.A(t.Context(), b, zone, state, nil, plugin.Options{})
			case dns.TypeSRV:
				m.Answer, m.Extra, _ = plugin.SRV(t.Context(), b, zone, state, plugin.Options{})
			case dns.TypeMX:
				m.Answer, m.Extra, _ = plugin.MX(t.Context(), b, zone, state, plugin.Options{})
			}
			asked, all := len(b.asked), m.Copy()
			all.Answer, all.Extra = nil, nil
			for _, s := range b.services["all.example.org."] {
				s.Priority, s.Weight = 0, 0
				owner := s.Host + "."
				a := (&msg.Service{TTL: 5}).NewA(owner, net.ParseIP(b.services[owner][0].Host).To4())
				switch typ {
				case dns.TypeA:
					all.Answer = append(all.Answer, s.NewCNAME("all.example.org.", owner), a)
				case dns.TypeSRV:
					all.Answer, all.Extra = append(all.Answer, s.NewSRV("all.example.org.", uint16(max(1, 100*100/(100*n))))), append(all.Extra, a)
				case dns.TypeMX:
					all.Answer, all.Extra = append(all.Answer, s.NewMX("all.example.org.")), append(all.Extra, a)
				}
			}
			for _, limit := range []int{512, 1232, wire.MaxMessage} {
				if got, want := packed(t, m, limit), packed(t, all, limit); !bytes.Equal(got, want) {
					t.Errorf("%d names, %s, limit %d: %d octets, want %d", n, dns.TypeToString[typ], limit, len(got), len(want))
				}
			}
			if asked > 5000 || n == 2000 && typ == dns.TypeSRV && asked > 1 {
				t.Errorf("%d names, %s: %d were looked up", n, dns.TypeToString[typ], asked)
			}
		}
	}
}

// packed is what a client gets of m.
func packed(t *testing.T, m *dns.Msg, limit int) []byte {
	t.Helper()
	var w wire.Reply
	if err := w.SetMsg(m); err != nil {
		t.Fatal(err)
	}
	return w.End(wire.EndMsg(m, limit))
}
