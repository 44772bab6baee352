package hosts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

const sample = `# a comment
192.0.2.1  a.example.org  b.example.org  # trailing
192.0.2.2	Tab.example.org
192.0.2.2	tab.example.org
not-an-address ignored.example.org
192.0.2.9
192.0.2.3 outside.example.com
192.0.2.4 *.wild.example.org
2001:db8::5 own.wild.example.org
fe80::1%eth0 zone.example.org
::ffff:192.0.2.6 mapped.example.org
`

// serving makes the handler of a directive in a block for zones.
func serving(t testing.TB, directive string) Hosts {
	t.Helper()
	c := caddy.NewTestController("dns", directive)
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	h := dnsserver.GetConfig(c).Plugin[0](nil).(Hosts)
	h.readHosts()
	return h
}

// both asks in both lanes and describes what came.
func both(t *testing.T, h Hosts, name, typ string) string {
	t.Helper()
	passed := false
	h.Next = plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
		passed = true
		return 0, nil
	})
	m := new(dns.Msg).SetQuestion(name, dns.StringToType[typ])
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rc, _ := h.ServeDNS(context.Background(), rec, m)
	got := describe(rc, rec.Msg)
	if passed {
		got = "next"
	}
	p, _ := m.Pack()
	var q wire.Query
	var w wire.Reply
	if !q.Parse(p) {
		t.Fatalf("%s %s: not eligible", name, typ)
	}
	w.Reset(nil)
	wireGot := "next"
	if h.ServeWire(context.Background(), &w, &q) == wire.Done {
		var onWire *dns.Msg
		if w.Holds() {
			onWire = new(dns.Msg)
			if err := onWire.Unpack(w.Finish(&q, 1232)); err != nil {
				t.Fatal(err)
			}
		}
		wireGot = describe(w.Rcode(), onWire)
	}
	if wireGot != got {
		t.Errorf("%s %s: lanes differ:\n%s\n%s", name, typ, got, wireGot)
	}
	return got
}

func describe(rc int, m *dns.Msg) string {
	if m == nil {
		return dns.RcodeToString[rc]
	}
	var lines []string
	for _, rr := range m.Answer {
		f := strings.Fields(rr.String())
		lines = append(lines, f[0]+" "+f[1]+" "+strings.Join(f[3:], " "))
	}
	sort.Strings(lines)
	aa := ""
	if m.Authoritative {
		aa = " aa"
	}
	return dns.RcodeToString[m.Rcode] + aa + ": " + strings.Join(lines, ", ")
}

// A name that stands at an address several times, in the file or beside it, is one of its names, where it came first.
func TestNamesOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	os.WriteFile(file, []byte("192.0.2.1 d b D\n192.0.2.2 b\n192.0.2.1 a b\n"), 0o644)
	h := serving(t, "hosts "+file+" {\n192.0.2.1 b c C d\n}")
	if got := strings.Join(h.LookupStaticAddr("192.0.2.1"), " "); got != "d. b. a. c." {
		t.Errorf("names %s", got)
	}
}

func TestServe(t *testing.T) {
	logtest.Capture(t)
	file := filepath.Join(t.TempDir(), "hosts")
	os.WriteFile(file, []byte(sample), 0o644)
	h := serving(t, "hosts "+file+" example.org 2.0.192.in-addr.arpa {\n192.0.2.1 a.example.org\n192.0.2.7 a.example.org\nttl 60\nfallthrough sub.example.org\n}")
	for _, tc := range []struct{ name, typ, want string }{
		{"A.example.org.", "A", "NOERROR aa: a.example.org. 60 A 192.0.2.1, a.example.org. 60 A 192.0.2.7"},
		{"b.example.org.", "A", "NOERROR aa: b.example.org. 60 A 192.0.2.1"},
		{"b.example.org.", "AAAA", "NOERROR aa: "},
		{"b.example.org.", "MX", "NOERROR aa: "},
		{"tab.example.org.", "A", "NOERROR aa: tab.example.org. 60 A 192.0.2.2"},
		{"zone.example.org.", "AAAA", "NOERROR aa: zone.example.org. 60 AAAA fe80::1"},
		{"mapped.example.org.", "A", "NOERROR aa: mapped.example.org. 60 A 192.0.2.6"},
		{"x.wild.example.org.", "A", "NOERROR aa: x.wild.example.org. 60 A 192.0.2.4"},
		{"own.wild.example.org.", "A", "NOERROR aa: own.wild.example.org. 60 A 192.0.2.4"},
		{"own.wild.example.org.", "AAAA", "NOERROR aa: own.wild.example.org. 60 AAAA 2001:db8::5"},
		{"x.x.wild.example.org.", "A", "SERVFAIL"},
		{"wild.example.org.", "A", "SERVFAIL"},
		{"*.wild.example.org.", "A", "NOERROR aa: *.wild.example.org. 60 A 192.0.2.4"},
		{"ignored.example.org.", "A", "SERVFAIL"},
		{"example.org.", "SOA", "SERVFAIL"},
		{"x.sub.example.org.", "A", "next"},
		{"outside.example.com.", "A", "next"},
		{"1.2.0.192.in-addr.arpa.", "PTR", "NOERROR aa: 1.2.0.192.in-addr.arpa. 60 PTR a.example.org., 1.2.0.192.in-addr.arpa. 60 PTR b.example.org."},
		{"4.2.0.192.in-addr.arpa.", "PTR", "next"},
		{"example.org.", "PTR", "next"},
		{"5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.", "PTR", "NOERROR aa: 5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa. 60 PTR own.wild.example.org."},
	} {
		if got := both(t, h, tc.name, tc.typ); got != tc.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tc.name, tc.typ, got, tc.want)
		}
	}
	if n := fmt.Sprint(h.LookupStaticHostV4("a.example.org"), h.LookupStaticHostV6("own.wild.example.org."), h.LookupStaticAddr("192.0.2.7"), h.LookupStaticAddr("x")); n != "[192.0.2.1 192.0.2.1 192.0.2.7] [2001:db8::5] [a.example.org.] []" {
		t.Errorf("lookups: %s", n)
	}
}

func TestUnsupported(t *testing.T) {
	h := serving(t, "hosts /dev/null example.org {\n192.0.2.1 www.example.org\nno_reverse\nfallthrough\nfallthrough_unsupported\n}")
	for name, want := range map[string]string{"www.example.org. A": "NOERROR aa: www.example.org. 3600 A 192.0.2.1", "www.example.org. TXT": "next", "www.example.org. AAAA": "NOERROR aa: ", "x.example.org. A": "next", "1.2.0.192.in-addr.arpa. PTR": "next"} {
		f := strings.Fields(name)
		if got := both(t, h, f[0], f[1]); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	h := serving(t, "hosts "+file+" example.org")
	if got := both(t, h, "a.example.org.", "A"); got != "SERVFAIL" {
		t.Errorf("without a file: %s", got)
	}
	write := func(text string, at int64) {
		os.WriteFile(file, []byte(text), 0o644)
		os.Chtimes(file, time.Unix(at, 0), time.Unix(at, 0))
		h.readHosts()
	}
	write("192.0.2.1 a.example.org\n", 1000)
	if got := both(t, h, "a.example.org.", "A"); got != "NOERROR aa: a.example.org. 3600 A 192.0.2.1" {
		t.Error(got)
	}
	before := h.file.Load()
	h.readHosts()
	if h.file.Load() != before {
		t.Error("an untouched file was read again")
	}
	write("192.0.2.2 a.example.org\n", 2000)
	if got := both(t, h, "a.example.org.", "A"); got != "NOERROR aa: a.example.org. 3600 A 192.0.2.2" {
		t.Error(got)
	}
	os.Remove(file)
	h.readHosts()
	if got := both(t, h, "a.example.org.", "A"); got != "NOERROR aa: a.example.org. 3600 A 192.0.2.2" {
		t.Errorf("after the file went: %s", got)
	}
}

func TestSetup(t *testing.T) {
	logtest.Capture(t)
	for _, tc := range []struct{ input, want string }{
		{"hosts", ""},
		{"hosts /none example.org {\n10.0.0.1 example.org\nfallthrough\n}", ""},
		{"hosts {\nfallthrough_unsupported\nfallthrough example.org\n}", ""},
		{"hosts {\nno_reverse whatever\nttl 5 6\n}", ""},
		{"hosts {\nttl\n}", "ttl needs a time in second"},
		{"hosts {\nttl x\n}", "ttl needs a number of second"},
		{"hosts {\nttl 0\n}", "ttl provided is invalid"},
		{"hosts {\nttl 65536\n}", "ttl provided is invalid"},
		{"hosts {\nreload\n}", "reload needs a duration (zero seconds to disable)"},
		{"hosts {\nreload x\n}", "invalid duration for reload 'x'"},
		{"hosts {\nreload -1s\n}", "invalid negative duration for reload '-1s'"},
		{"hosts {\nfallthrough\n10.0.0.1 example.org\n}", "unknown property '10.0.0.1'"},
		{"hosts {\n\"\" a\n}", "unknown property ''"},
		{"hosts {\nno_revers\n}", "unknown property 'no_revers': did you mean 'no_reverse'?"},
		{"hosts {\nfallthrough_unsupported\n}", "fallthrough_unsupported requires fallthrough"},
		{"hosts {\nfallthrough\nfallthrough_unsupported x\n}", "Wrong argument count"},
		{"hosts /etc/hosts example.org a..b", `invalid zone "a..b"`},
		{"hosts\nhosts", "this plugin can only be used once per Server Block"},
	} {
		err := setup(caddy.NewTestController("dns", tc.input))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%q: got %v, want %q", tc.input, err, tc.want)
		}
	}
}

func TestReadmeSyntax(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("%v\n%s\nis not\n%s", err, got, directive.Doc().Syntax)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(sample))
	f.Fuzz(func(t *testing.T, text []byte) {
		b := newBuilder(func([]byte) bool { return true }, false, nil)
		if err := b.read(bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		tab, err := b.build()
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range tab.reverse {
			name, addr := tab.at(place).name(), tab.at(place).addr()
			typ := uint16(wire.TypeA)
			if addr.Is6() {
				typ = wire.TypeAAAA
			}
			var f found
			stands := false
			for ok := tab.find(&f, name, wire.Hash(name), typ); ok; ok = f.next() {
				stands = stands || f.addr() == addr
			}
			if !stands {
				t.Fatalf("%s has %v, but not the other way round", wire.Text(name), addr)
			}
			if !tab.has(addr, name) {
				t.Fatalf("%v does not have %s, which it is said to have", addr, wire.Text(name))
			}
		}
	})
}

// A block list of many names for one address.
func BenchmarkBlocklist(b *testing.B) {
	var text bytes.Buffer
	const n = 100000
	for i := range n {
		fmt.Fprintf(&text, "0.0.0.0 ads-%d.example-%d.org\n", i, i%1000)
	}
	var t *table
	for b.Loop() {
		bl := newBuilder(func([]byte) bool { return true }, true, nil)
		if err := bl.read(bytes.NewReader(text.Bytes())); err != nil {
			b.Fatal(err)
		}
		t, _ = bl.build()
	}
	b.ReportMetric(float64(t.size())/n, "octets/name")
}

func BenchmarkServeWire(b *testing.B) {
	h := serving(b, "hosts /dev/null example.org {\n192.0.2.1 www.example.org\n}")
	p, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	var q wire.Query
	var w wire.Reply
	buf := make([]byte, 512)
	ctx := context.Background()
	var handler plugin.WireHandler = h
	b.ReportAllocs()
	for b.Loop() {
		q.Parse(p)
		w.Reset(buf)
		if handler.ServeWire(ctx, &w, &q) != wire.Done {
			b.Fatal("not answered")
		}
		w.Finish(&q, 1232)
	}
}
