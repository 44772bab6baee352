package geoip

import (
	"context"
	"flag"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

var update = flag.Bool("update", false, "write the database of the README's example")

func serving(t testing.TB, directive string) GeoIP {
	t.Helper()
	c := caddy.NewTestController("dns", directive)
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	return dnsserver.GetConfig(c).Plugin[0](test.NextHandler(dns.RcodeRefused, nil)).(GeoIP)
}

// labels is what is told about the client of a query.
func labels(g GeoIP, client string, query *dns.Msg) map[string]string {
	ctx := metadata.ContextWithMetadata(context.Background())
	ctx = g.Metadata(ctx, request.Request{W: &test.ResponseWriter{RemoteIP: client}, Req: query})
	out := map[string]string{}
	for name, f := range metadata.ValueFuncs(ctx) {
		out[name] = f()
	}
	return out
}

func withSubnet(address string) *dns.Msg {
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	if address == "" {
		return m
	}
	m.SetEdns0(1232, false)
	if address == "none" {
		return m
	}
	ip, network, _ := net.ParseCIDR(address)
	bits, _ := network.Mask.Size()
	s := &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: uint8(bits), Address: ip}
	if ip.To4() == nil {
		s.Family = 2
	}
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: 65001}, s}
	return m
}

var (
	cambridge = map[string]string{
		"geoip/city/name": "Cambridge", "geoip/country/name": "United Kingdom", "geoip/country/code": "GB", "geoip/country/is_in_european_union": "false",
		"geoip/continent/name": "Europe", "geoip/continent/code": "EU", "geoip/subdivisions/code": "ENG,CAM", "geoip/latitude": "52.2242",
		"geoip/longitude": "0.1315", "geoip/timezone": "Europe/London", "geoip/postalcode": "CB4",
	}
	sweden = map[string]string{
		"geoip/city/name": "", "geoip/country/name": "Sweden", "geoip/country/code": "SE", "geoip/country/is_in_european_union": "true",
		"geoip/continent/name": "", "geoip/continent/code": "", "geoip/subdivisions/code": "", "geoip/latitude": "-0.5",
		"geoip/longitude": "0", "geoip/timezone": "", "geoip/postalcode": "",
	}
	nowhere = map[string]string{
		"geoip/city/name": "", "geoip/country/name": "", "geoip/country/code": "", "geoip/country/is_in_european_union": "false",
		"geoip/continent/name": "", "geoip/continent/code": "", "geoip/subdivisions/code": "", "geoip/latitude": "",
		"geoip/longitude": "", "geoip/timezone": "", "geoip/postalcode": "",
	}
)

func TestMetadata(t *testing.T) {
	city := writeDatabase(t, "GeoIP2-City", 6, places)
	four := writeDatabase(t, "GeoLite2-City", 4, map[string]any{"192.0.2.0/25": places["192.0.2.0/25"]})
	asn := writeDatabase(t, "GeoLite2-ASN", 6, systems)
	country := writeDatabase(t, "GeoLite2-Country", 6, places)
	isp := writeDatabase(t, "GeoIP2-ISP", 6, systems)
	for _, tc := range []struct {
		directive, client, subnet string
		want                      map[string]string
	}{
		{city, "192.0.2.7", "", cambridge},
		{city, "::ffff:192.0.2.7", "", cambridge},
		{city, "192.0.2.200", "", nowhere},
		{city, "2001:db8::7", "", sweden},
		{city, "198.51.100.1", "", nowhere}, // what is there cannot be read
		{city, "192.0.2.7", "2001:db8::/56", cambridge},
		{city + " {\nedns-subnet\n}", "192.0.2.7", "2001:db8::/56", sweden},
		{city + " {\nedns-subnet\n}", "2001:db8::7", "192.0.2.0/24", cambridge},
		{city + " {\nedns-subnet\n}", "192.0.2.7", "none", cambridge},
		{city + " {\nedns-subnet\n}", "192.0.2.7", "", cambridge},
		{four, "192.0.2.7", "", cambridge},
		{four + " {\nedns-subnet\n}", "2001:db8::7", "192.0.2.0/24", cambridge},
		{four, "2001:db8::7", "", nil},
		{asn, "192.0.2.200", "", map[string]string{"geoip/asn/number": "64496", "geoip/asn/org": "Example Networks"}},
		{country, "2001:db8::7", "", sweden},
		{isp, "192.0.2.200", "", map[string]string{"geoip/asn/number": "64496", "geoip/asn/org": "Example Networks"}},
		{asn, "198.51.100.1", "", map[string]string{"geoip/asn/number": "", "geoip/asn/org": ""}},
	} {
		got := labels(serving(t, "geoip "+tc.directive), tc.client, withSubnet(tc.subnet))
		if len(got) != len(tc.want) || !maps.Equal(got, tc.want) && len(got) > 0 {
			t.Errorf("%s, %q: got %v, want %v", tc.client, tc.subnet, got, tc.want)
		}
	}
}

// nobody is a client of which nothing is known.
type nobody struct{ test.ResponseWriter }

func (*nobody) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "@socket", Net: "unix"} }

func TestWithoutAddress(t *testing.T) {
	g := serving(t, "geoip "+writeDatabase(t, "GeoIP2-City", 6, places))
	ctx := metadata.ContextWithMetadata(t.Context())
	g.Metadata(ctx, request.Request{W: &nobody{}, Req: withSubnet("")})
	GeoIP{}.Metadata(ctx, request.Request{W: &test.ResponseWriter{}, Req: withSubnet("")})
	if got := metadata.Labels(ctx); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	if ctx := g.Metadata(t.Context(), request.Request{W: &test.ResponseWriter{}, Req: withSubnet("")}); ctx != t.Context() {
		t.Error("without metadata there is another context")
	}
}

// A database is searched for those who read, and once.
func TestLookupIsLazy(t *testing.T) {
	db, err := open(writeDatabase(t, "GeoIP2-City", 6, places))
	if err != nil {
		t.Fatal(err)
	}
	l := &lazy{db: db, addr: netip.MustParseAddr("192.0.2.7")}
	if l.r != nil {
		t.Error("looked up at once")
	}
	first := l.record()
	if l.record() != first {
		t.Error("looked up twice")
	}
}

func TestPasses(t *testing.T) {
	g := serving(t, "geoip "+writeDatabase(t, "GeoIP2-City", 6, places))
	if rc, err := g.ServeDNS(t.Context(), &test.ResponseWriter{}, withSubnet("")); rc != dns.RcodeRefused || err != nil {
		t.Errorf("got %d, %v", rc, err)
	}
	if out := g.ServeWire(t.Context(), new(wire.Reply), new(wire.Query)); out != wire.Unpack {
		t.Errorf("got %v", out)
	}
	if _, ok := g.WireSelf().(GeoIP); !ok {
		t.Errorf("WireSelf is a %T", g.WireSelf())
	}
}

func TestSetup(t *testing.T) {
	city := writeDatabase(t, "DBIP-City-Lite", 6, places)
	empty := filepath.Join(t.TempDir(), "empty.mmdb")
	os.WriteFile(empty, nil, 0o600)
	for _, tc := range []struct{ input, err string }{
		{"geoip " + city, ""},
		{"geoip " + city + " {\nedns-subnet\n}", ""},
		{"geoip " + writeDatabase(t, "GeoIP2-Enterprise", 6, places), ""},
		{"geoip", "plugin/geoip: Testfile:1 - Error during parsing: Wrong argument count"},
		{"geoip a b", "plugin/geoip: Testfile:1 - Error during parsing: configuring multiple databases is not supported"},
		{"geoip " + city + "\ngeoip " + city, "configuring multiple databases is not supported"},
		{"geoip " + city + " {\nlanguages en\n}", `unknown property "languages"`},
		{"geoip " + city + " {\nedns-subnet on\n}", "Wrong argument count"},
		{"geoip /does/not/exist", "plugin/geoip: failed to open database file: open /does/not/exist: no such file"},
		{"geoip " + empty, "plugin/geoip: failed to open database file: "},
		{"geoip " + writeDatabase(t, "GeoIP2-Domain", 6, systems), "plugin/geoip: database does not provide any supported schema (city, asn)"},
		{"geoip " + writeDatabase(t, "GeoLite2-City", 6, map[string]any{"127.0.0.0/8": object{"location": object{"latitude": "no number"}}}), `schema "city": `},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
	text, _ := os.ReadFile("README.md")
	for _, s := range schemas {
		for _, l := range s.labels {
			if !strings.Contains(string(text), "`"+l.name+"`") {
				t.Errorf("README does not tell of %s", l.name)
			}
		}
	}
}

// Whatever file there is, opening it and looking up gives values or an error.
func FuzzDatabase(f *testing.F) {
	f.Add(buildDatabase("GeoIP2-City", 6, places))
	f.Add(buildDatabase("GeoLite2-ASN", 4, systems))
	file := filepath.Join(f.TempDir(), "fuzz.mmdb")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := open(file)
		if err != nil {
			return
		}
		ctx := metadata.ContextWithMetadata(t.Context())
		db.offer(ctx, netip.MustParseAddr("192.0.2.7"))
		names := metadata.Labels(ctx)
		if len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "geoip/") }) {
			t.Fatalf("got %v", names)
		}
		for _, v := range metadata.ValueFuncs(ctx) {
			v()
		}
	})
}

func BenchmarkMetadata(b *testing.B) {
	g := serving(b, "geoip "+writeDatabase(b, "GeoIP2-City", 6, places))
	state := request.Request{W: &test.ResponseWriter{RemoteIP: "192.0.2.7"}, Req: withSubnet("")}
	for name, read := range map[string]bool{"unread": false, "read": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx := metadata.ContextWithMetadata(b.Context())
				ctx = g.Metadata(ctx, state)
				if read && metadata.ValueFunc(ctx, "geoip/country/code")() != "GB" {
					b.Fatal("elsewhere")
				}
			}
		})
	}
}

// Who writes a newer database over the old one (cp, curl -o) does not end the process, nor mixes old and new: what was read
// at the start stays until a reload.
func TestFileIsWrittenOver(t *testing.T) {
	file := writeDatabase(t, "GeoIP2-City", 6, places)
	g := serving(t, "geoip "+file)
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	if now := labels(g, "192.0.2.7", withSubnet("")); !maps.Equal(now, cambridge) {
		t.Errorf("when it is empty: %v", now)
	}
	if err := os.WriteFile(file, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	if now := labels(g, "192.0.2.7", withSubnet("")); !maps.Equal(now, cambridge) {
		t.Errorf("when it is another: %v", now)
	}
}

// What is asked for when the configuration is over is not known.
func TestClosed(t *testing.T) {
	g := serving(t, "geoip "+writeDatabase(t, "GeoIP2-City", 6, places))
	if got := labels(g, "192.0.2.7", withSubnet("")); !maps.Equal(got, cambridge) {
		t.Fatal(got)
	}
	given := 0
	free := g.db.free
	g.db.free = func() { given++; free() }
	g.db.close()
	g.db.close()
	if got := labels(g, "192.0.2.7", withSubnet("")); !maps.Equal(got, nowhere) || given != 1 {
		t.Errorf("%v; memory was given back %d times", got, given)
	}
}
