package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

var servers atomic.Int64

// unusedServer is a server that no metric of this process knows yet.
func unusedServer() string { return fmt.Sprintf("dns://server%d:53", servers.Add(1)) }

// serve serves a query as the server srv does, in the view golden.
func serve(t *testing.T, h plugin.Handler, srv string, m *dns.Msg, w dns.ResponseWriter) (int, error) {
	t.Helper()
	ctx := context.WithValue(t.Context(), dnsserver.Key{}, &dnsserver.Server{Addr: srv})
	ctx = context.WithValue(ctx, dnsserver.ViewKey{}, "golden")
	return h.ServeDNS(ctx, w, m)
}

// named is a plugin with a name.
type named struct {
	plugin.HandlerFunc
	name string
}

func (n named) Name() string { return n.name }

func answers(m func(*dns.Msg)) plugin.HandlerFunc {
	return func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		reply := new(dns.Msg).SetReply(r)
		m(reply)
		w.WriteMsg(reply)
		return reply.Rcode, nil
	}
}

func TestCounts(t *testing.T) {
	nx := answers(func(m *dns.Msg) { m.Rcode = dns.RcodeNameError })
	rewrites := plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		r.Question[0] = dns.Question{Name: "a.very.much.longer.name.example.net.", Qtype: dns.TypeMX, Qclass: dns.ClassINET}
		w.WriteMsg(new(dns.Msg).SetReply(r))
		return dns.RcodeSuccess, nil
	})
	raw := plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		w.Write(make([]byte, 40))
		return dns.RcodeSuccess, nil
	})
	passedOn := plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		packet, _ := new(dns.Msg).SetRcode(r, dns.RcodeRefused).Pack()
		w.Write(packet)
		return dns.RcodeSuccess, nil
	})
	for _, tc := range []struct {
		name  string
		qtype uint16
		w     dns.ResponseWriter
		next  plugin.Handler

		zone, proto, family, typ, rcode, plugin string
		replySize                               float64
		unanswered                              float64
	}{
		{"www.example.org.", dns.TypeA, &test.ResponseWriter{}, named{nx, "file"}, "example.org.", "udp", "1", "A", "NXDOMAIN", "file", 33, 0},
		{"www.Sub.example.org.", dns.TypeHTTPS, &test.ResponseWriter6{}, named{nx, "file"}, "sub.example.org.", "udp", "2", "HTTPS", "NXDOMAIN", "file", 37, 0},
		{"example.net.", 65280, &test.ResponseWriter{TCP: true}, named{nx, "file"}, ".", "tcp", "1", "other", "NXDOMAIN", "file", 29, 0},
		{"example.org.", dns.TypeAAAA, &test.ResponseWriter{}, test.NextHandler(dns.RcodeRefused, errors.New("no")), "example.org.", "udp", "1", "AAAA", "REFUSED", "", 0, 0},
		{"example.org.", dns.TypeAAAA, &test.ResponseWriter{}, nil, "example.org.", "udp", "1", "AAAA", "SERVFAIL", "", 0, 0},
		{"example.org.", dns.TypeTXT, &test.ResponseWriter{}, test.NextHandler(dns.RcodeSuccess, nil), "example.org.", "udp", "1", "TXT", "NOERROR", "", 0, 1},
		{"example.org.", dns.TypeTXT, &test.ResponseWriter{}, test.NextHandler(3841, nil), "example.org.", "udp", "1", "TXT", "NOERROR", "", 0, 1},
		{"example.org.", dns.TypeNS, &test.ResponseWriter{}, named{raw, "raw"}, "example.org.", "udp", "1", "NS", "NOERROR", "", 40, 0},
		{"example.org.", dns.TypeSOA, &test.ResponseWriter{}, named{passedOn, "dynupdate"}, "example.org.", "udp", "1", "SOA", "REFUSED", "", 29, 0},
		{"example.org.", dns.TypeA, &test.ResponseWriter{}, named{rewrites, "rewrite"}, "example.org.", "udp", "1", "A", "NOERROR", "rewrite", 53, 0},
	} {
		server := unusedServer()
		met := New("localhost:0")
		met.AddZone("example.org.")
		met.AddZone("sub.example.org.")
		met.Next = tc.next
		m := new(dns.Msg).SetQuestion(tc.name, tc.qtype)
		m.SetEdns0(4096, true)
		size := float64(m.Len())
		serve(t, met, server, m, tc.w)

		for what, c := range map[string]prometheus.Collector{
			"requests":  vars.RequestCount.WithLabelValues(server, tc.zone, "golden", tc.proto, tc.family, tc.typ),
			"do":        vars.RequestDo.WithLabelValues(server, tc.zone, "golden"),
			"responses": vars.ResponseRcode.WithLabelValues(server, tc.zone, "golden", tc.rcode, tc.plugin),
		} {
			if got := testutil.ToFloat64(c); got != 1 {
				t.Errorf("%s %d: %s are %v", tc.name, tc.qtype, what, got)
			}
		}
		if got := testutil.ToFloat64(vars.Unanswered.WithLabelValues(server, tc.zone, "golden")); got != tc.unanswered {
			t.Errorf("%s %d: %v unanswered", tc.name, tc.qtype, got)
		}
		if got := sum(t, vars.RequestSize.WithLabelValues(server, tc.zone, "golden", tc.proto)); got != size {
			t.Errorf("%s %d: query of %v octets, want %v", tc.name, tc.qtype, got, size)
		}
		if got := sum(t, vars.ResponseSize.WithLabelValues(server, tc.zone, "golden", tc.proto)); got != tc.replySize {
			t.Errorf("%s %d: reply of %v octets, want %v", tc.name, tc.qtype, got, tc.replySize)
		}
		if n := testutil.CollectAndCount(vars.RequestDuration.MustCurryWith(prometheus.Labels{"server": server})); n == 0 {
			t.Errorf("%s: no duration", tc.name)
		}
	}
}

func TestTheTrueWriterIsCounted(t *testing.T) {
	path := new(plugin.Path)
	server := unusedServer()
	ctx := context.WithValue(t.Context(), plugin.PathKey{}, path)
	ctx = context.WithValue(ctx, dnsserver.Key{}, &dnsserver.Server{Addr: server})
	met := New("localhost:0")
	// errors passes on to cache, which hides the writer behind one of its own.
	met.Next = named{func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		return plugin.NextOrFailure("errors", named{answers(func(*dns.Msg) {}), "cache"}, ctx, struct{ dns.ResponseWriter }{w}, r)
	}, "errors"}
	w := &pathWriter{path: path}
	path.Enter("prometheus")
	met.ServeDNS(ctx, w, new(dns.Msg).SetQuestion("writer.example.org.", dns.TypeA))
	if got := testutil.ToFloat64(vars.ResponseRcode.WithLabelValues(server, ".", "", "NOERROR", "cache")); got != 1 {
		t.Errorf("counted %v replies of cache", got)
	}
}

// A plugin above may capture the reply, as it asks somebody else if it does not like it: the server gets another one, or the same.
func TestTheWriterOfACapturedReply(t *testing.T) {
	server := unusedServer()
	path := new(plugin.Path)
	ctx := context.WithValue(t.Context(), plugin.PathKey{}, path)
	ctx = context.WithValue(ctx, dnsserver.Key{}, &dnsserver.Server{Addr: server})
	met := New("localhost:0")
	met.Next = named{answers(func(*dns.Msg) {}), "file"}
	path.Enter("prometheus")
	met.ServeDNS(ctx, nonwriter.New(&test.ResponseWriter{}), new(dns.Msg).SetQuestion("captured.example.org.", dns.TypeA))
	if got := testutil.ToFloat64(vars.ResponseRcode.WithLabelValues(server, ".", "", "NOERROR", "file")); got != 1 {
		t.Errorf("counted %v replies of file", got)
	}
}

// pathWriter notes who writes, as the server's writer does.
type pathWriter struct {
	test.ResponseWriter
	path *plugin.Path
}

func (w *pathWriter) WriteMsg(*dns.Msg) error { w.path.Write(); return nil }

func sum(t *testing.T, o prometheus.Observer) float64 {
	t.Helper()
	h := histogram(t, o)
	return h.GetSampleSum()
}

func TestZones(t *testing.T) {
	m := New("localhost:0")
	if z := (&Metrics{}).ZoneNames(); len(z) != 0 {
		t.Errorf("got %q", z)
	}
	m.AddZone("example.org.")
	m.AddZone("example.net.")
	m.AddZone("example.org.")
	names := m.ZoneNames()
	slices.Sort(names)
	if !slices.Equal(names, []string{"example.net.", "example.org."}) {
		t.Errorf("got %q", names)
	}
	m.RemoveZone("example.org.")
	if z := m.ZoneNames(); !slices.Equal(z, []string{"example.net."}) {
		t.Errorf("got %q", z)
	}
	if z := m.zone("www.example.org."); z != "." {
		t.Errorf("got %q", z)
	}
}

func TestContext(t *testing.T) {
	if s, v := WithServer(t.Context()), WithView(t.Context()); s != "" || v != "" {
		t.Errorf("got %q %q", s, v)
	}
}

func TestMustRegister(t *testing.T) {
	m := &Metrics{Reg: prometheus.NewRegistry()}
	opts := prometheus.CounterOpts{Name: "x", Help: "x"}
	m.MustRegister(prometheus.NewCounter(opts))
	m.MustRegister(prometheus.NewCounter(opts)) // the same once more
	defer func() {
		if recover() == nil {
			t.Error("another collector of that name was taken")
		}
	}()
	opts.Help = "y"
	m.MustRegister(prometheus.NewCounter(opts))
}

func TestEndpoint(t *testing.T) {
	m := New("localhost:0")
	if err := m.OnStartup(); err != nil {
		t.Fatal(err)
	}
	defer m.OnFinalShutdown()
	mfs := test.Scrape("http://" + ListenAddr + "/metrics")
	if v, labels := test.MetricValue("coredns_build_info", mfs); v != "1" || labels["version"] != coremain.Version() || !strings.HasPrefix(labels["goversion"], "go") {
		t.Errorf("build_info is %s %v", v, labels)
	}
	for _, name := range []string{"coredns_panics_total", "go_goroutines", "process_start_time_seconds"} {
		if v, _ := test.MetricValue(name, mfs); v == "" {
			t.Errorf("no %s", name)
		}
	}
	if err := m.OnFinalShutdown(); err != nil || test.Scrape("http://"+ListenAddr+"/metrics") != nil {
		t.Errorf("still there (%v)", err)
	}
}

func TestEndpointThatCannotBeOpened(t *testing.T) {
	out := logtest.Capture(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0") // without SO_REUSEPORT
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if err := New(ln.Addr().String()).OnStartup(); err != nil {
		t.Errorf("the start fails: %v", err)
	}
	if !strings.Contains(out.String(), "[ERROR] Failed to start metrics handler: listen tcp "+ln.Addr().String()) {
		t.Errorf("logged %q", out.String())
	}
}

func TestRuntimeMetrics(t *testing.T) {
	m := New("localhost:0")
	m.lease = m.newLease(nil, &serving{runtimeMetrics: true})
	m.OnStartup()
	defer m.OnFinalShutdown()
	mfs := test.Scrape("http://" + ListenAddr + "/metrics")
	if v, _ := test.MetricValue("go_sched_gomaxprocs_threads", mfs); v == "" {
		t.Error("no runtime metrics")
	}
}

func TestPluginEnabled(t *testing.T) {
	vars.PluginEnabled.Reset()
	config := &dnsserver.Config{ListenHosts: []string{"127.0.0.1", "::1"}, ViewName: "golden", Zone: "example.org.", Transport: "dns", Port: "53"}
	for _, name := range []string{"cache", "dnstap", "dnstap"} {
		config.AddPlugin(func(plugin.Handler) plugin.Handler { return named{name: name} })
	}
	if _, err := dnsserver.NewServer("dns://:53", []*dnsserver.Config{config}); err != nil {
		t.Fatal(err)
	}
	rows := rowsOf([]string{"dns://example.org.:53", "tls://.:853"}, config)
	if len(rows) != 2*2*2 {
		t.Errorf("%d rows, want 8: %v", len(rows), rows)
	}
	if want := (row{"tls://[::1]:853", ".", "golden", "dnstap"}); !slices.Contains(rows, want) {
		t.Errorf("no %v in %v", want, rows)
	}
	// The next instance has one plugin less.
	enabled.add(rows)
	enabled.add(rows[:4])
	if n := testutil.CollectAndCount(vars.PluginEnabled); n != 8 {
		t.Errorf("%d series while both run", n)
	}
	enabled.remove(rows)
	if n := testutil.CollectAndCount(vars.PluginEnabled); n != 4 {
		t.Errorf("%d series when the old one has gone", n)
	}
	enabled.remove(rows[:4])
	if n := testutil.CollectAndCount(vars.PluginEnabled); n != 0 {
		t.Errorf("%d series in the end", n)
	}
}

func TestSetup(t *testing.T) {
	dir, err := test.WritePEMFiles(t)
	if err != nil {
		t.Fatal(err)
	}
	web, broken := filepath.Join(dir, "web.yml"), filepath.Join(dir, "broken.yml")
	os.WriteFile(web, []byte("tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"), 0o600)
	os.WriteFile(broken, []byte("tls_server_config:\n  cert_file: none.pem\n  key_file: key.pem\n"), 0o600)
	for _, tc := range []struct{ input, addr, err string }{
		{"prometheus", "localhost:9153", ""},
		{"prometheus localhost:53", "localhost:53", ""},
		{"prometheus {\nruntime_metrics\n}", "localhost:9153", ""},
		{"prometheus :53 {\ntls " + web + "\n}", ":53", ""},
		{"prometheus {}", "", "plugin/prometheus: Testfile:1 - Error during parsing: address {}: missing port in address"},
		{"prometheus /foo", "", "address /foo: missing port in address"},
		{"prometheus :99999", "", `invalid port "99999" in ":99999": must be a number from 0 to 65535`},
		{"prometheus a b c", "", "Wrong argument count"},
		{"prometheus {\nruntime_metrics x\n}", "", "Wrong argument count"},
		{"prometheus {\nfoo\n}", "", "Testfile:2 - Error during parsing: unknown option: foo"},
		{"prometheus\nprometheus", "", "plugin/prometheus: Testfile:2 - Error during parsing: this plugin can only be used once per Server Block: 'prometheus' stands at Testfile:1 already"},
		{"prometheus {\ntls " + web + "\ntls " + web + "\n}", "", "Testfile:3 - Error during parsing: tls block already specified"},
		{"prometheus {\ntls\n}", "", "Wrong argument count"},
		{"prometheus {\ntls " + dir + "/none.yml\n}", "", "TLS config file does not exist: " + dir + "/none.yml"},
		{"prometheus {\ntls " + broken + "\n}", "", "none.pem"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		c.ServerBlockKeys = []string{"dns://example.org.:53", "dns://example.net.:53"}
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
		m := dnsserver.GetConfig(c).Plugin[0](nil).(*Metrics)
		if m.Addr != tc.addr || !slices.Equal(m.ZoneNames(), []string{"example.org.", "example.net."}) {
			t.Errorf("%q: got %q %q", tc.input, m.Addr, m.ZoneNames())
		}
	}
}

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(prometheus.DefaultGatherer, "coredns_dns_unanswered_total", "coredns_build_info")
	if err != nil || len(problems) > 0 {
		t.Errorf("got %v, %v", problems, err)
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

func BenchmarkServeDNS(b *testing.B) {
	met := New("localhost:0")
	met.AddZone("example.org.")
	met.Next = test.NextHandler(dns.RcodeNameError, nil)
	m, w := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), &test.ResponseWriter{}
	b.ReportAllocs()
	for b.Loop() {
		met.ServeDNS(b.Context(), w, m)
	}
}
