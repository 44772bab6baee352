package test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

var errFails = errors.New("it fails, as it is meant to")

// Directives of which a configuration fails: when all plugins are set up, when all have begun, or before any has.
func init() {
	dnsserver.Directives = append([]string{"failfirst"}, append(dnsserver.Directives, "failsetup", "failstart")...)
	plugin.Register("failsetup", func(*caddy.Controller) error { return errFails })
	start := func(c *caddy.Controller) error {
		c.OnStartup(func() error { return errFails })
		return nil
	}
	plugin.Register("failstart", start)
	plugin.Register("failfirst", start)
}

// A reload that fails leaves nothing behind of any plugin that has an end, whether it fails in a setup or at a start, and
// the server goes on as it was. Nor does a configuration that is only looked at, or set up for one question.
func TestFailedReloads(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	db := file("db.a.example", "$TTL 5\n@ IN SOA ns h 1 2 3 4 5\n@ NS ns\n")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(func() { web.Listener.Close(); web.CloseClientConnections() })
	api := clusterAPI(t, nil)
	certificates(t, dir)
	upstream := tailored(t)
	for name, lines := range map[string]string{
		"nothing":       "",
		"acme":          "tls {\nacme dns.example.org\nca https://" + web.Listener.Addr().String() + "/\nstorage " + dir + "/acme\n}",
		"auto":          "auto {\ndirectory " + dir + " db\\.(.*) {1}\n}",
		"cache":         "cache",
		"control":       "control " + filepath.Join(dir, "control") + " {\nstatus " + loopback.Addr() + "\n}",
		"cookie":        "cookie {\nsecret_file " + file("secrets", "e5e973e5a6b2a43f48e7dc849e37bfcf\n") + "\n}",
		"dnssec":        "dnssec",
		"dnstap":        "dnstap tcp://" + loopback.Addr() + " full",
		"dnstap listen": "dnstap listen tcp://" + loopback.Addr() + " full",
		"dynupdate":     "dynupdate d.example {\nfile " + db + "\ndatabase " + filepath.Join(dir, "updates") + "\nallow key. * *\n}",
		"errors":        "errors {\nconsolidate 1h .*\n}",
		"etcd":          "etcd e.example {\nendpoint " + web.URL + "\n}",
		"etcd password": "etcd e.example {\nendpoint " + web.URL + "\ncredentials a b\n}",
		"etcd watch":    "etcd e.example {\nendpoint " + web.URL + "\nwatch\n}",
		"file":          "file " + db + " a.example",
		"forward":       "forward a.example " + upstream + " {\nhealth_check 10ms\n}",
		"forward tls":   "forward a.example tls://" + loopback.Addr() + " {\nhealth_check 10ms\n}",
		"forward https": "forward a.example https://" + loopback.Addr() + " {\nhealth_check 10ms\n}",
		"forward quic":  "forward a.example quic://" + loopback.Addr() + " {\nhealth_check 10ms\n}",
		"grpc":          "grpc a.example " + loopback.Addr() + " " + loopback.Addr(),
		"health":        "health " + loopback.Addr(),
		"hosts":         "hosts " + file("hosts", "192.0.2.1 a.example\n") + " a.example",
		"keylog":        "tls " + dir + "/cert.pem " + dir + "/key.pem" + " {\nkeylog " + filepath.Join(dir, "keys") + "\n}",
		"kubernetes":    "kubernetes cluster.test {\nendpoint " + api + "\n}",
		"loadbalance":   "loadbalance weighted " + file("weights", "a.example\n192.0.2.1 1\n"),
		"loop":          "loop",
		"nomad":         "nomad n.example {\naddress " + web.URL + "\n}",
		"on":            "on shutdown true",
		"pprof":         "pprof " + loopback.Addr(),
		"prometheus":    "prometheus " + loopback.Addr(),
		"ready":         "ready " + loopback.Addr(),
		"recurse":       "recurse a.example {\nhints " + file("hints", ". 60 NS a.root.\na.root. 60 A 127.0.0.1\n") + "\n}",
		"reload":        "reload 2s",
		"secondary":     "secondary s.example {\ntransfer from " + loopback.Addr() + "\n}",
		"tls":           "tls " + dir + "/cert.pem " + dir + "/key.pem",
		"trace":         "trace " + loopback.Addr(),
		"transfer":      "transfer {\nto " + loopback.Addr() + "\n}\nfile " + db + " a.example",
		"tsig":          "tsig {\nsecrets " + file("tsig", "key \"k.\" {\nsecret \"AAAA\";\n};\n") + "\nreload 1s\n}",
		"validator":     "validator {\nstate " + filepath.Join(dir, "anchors") + "\n}",
	} {
		t.Run(name, func(t *testing.T) {
			good := ".:0 {\nbind 127.0.0.1\n" + lines + "\nwhoami\n"
			i, err := CoreDNSServer(good + "}")
			if err != nil {
				t.Fatal(err)
			}
			r := &running{i}
			defer r.end()
			udp, _ := CoreDNSServerPorts(i, 0)
			asked := func() string { return brief(ask(t, "udp", udp, question("other.test.", dns.TypeA))) }
			want := asked()
			for _, fails := range []string{"failsetup", "failstart", "failfirst", "validate", "once"} {
				reload := func() {
					switch fails {
					case "validate":
						if err := dnsserver.Validate(NewInput(good + "}")); err != nil {
							t.Fatal(err)
						}
						return
					case "once":
						_, end, err := dnsserver.Once(NewInput(good + "}"))
						if err != nil {
							t.Fatal(err)
						}
						end()
						return
					}
					if _, err := i.Restart(NewInput(good + fails + "\n}")); err == nil || !strings.Contains(err.Error(), errFails.Error()) {
						t.Fatalf("%s: %v", fails, err)
					}
				}
				reload() // the first time some are made that stay, as for the process
				goroutines, descriptors := runtime.NumGoroutine(), openFiles(t)
				const times = 16
				for range times {
					reload()
				}
				for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines+times/2 || openFiles(t) > descriptors+times/2; {
					if time.Now().After(end) {
						t.Errorf("%s: %d goroutines, %d before; %d descriptors, %d before", fails, runtime.NumGoroutine(), goroutines, openFiles(t), descriptors)
						if os.Getenv("STACKS") != "" {
							b := make([]byte, 1<<20)
							t.Logf("%s", b[:runtime.Stack(b, true)])
						}
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if got := asked(); got != want {
					t.Errorf("%s: afterwards the server says %s, before %s", fails, got, want)
				}
			}
		})
	}
}

// The gauge of hosts tells of the configuration that runs, also after one that failed, and of a file as long as one has it.
func TestEntriesOfHosts(t *testing.T) {
	dir, figures := t.TempDir(), loopback.Addr()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("192.0.2.1 a.example\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	corefile := func(hosts string) string {
		return ".:0 {\nbind 127.0.0.1\nroot " + dir + "\nprometheus " + figures + "\nhosts " + hosts + "\n}"
	}
	i, err := CoreDNSServer(corefile("a"))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	expect := func(what, a, b string) {
		t.Helper()
		for name, want := range map[string]string{"a": a, "b": b} {
			got, _ := test.MetricValueLabel("coredns_hosts_entries", filepath.Join(dir, name), test.Scrape("http://"+figures+"/metrics"))
			if got != want {
				t.Errorf("%s: file %s has %q entries, want %q", what, name, got, want)
			}
		}
	}
	expect("before", "2", "")
	for _, hosts := range []string{"a {\n192.0.2.2 b.example\n}", "b"} {
		if _, err := r.instance.Restart(NewInput(corefile(hosts + "\nfailstart"))); err == nil {
			t.Fatal("it starts")
		}
		expect("after one that failed", "2", "")
	}
	next, err := r.instance.Restart(NewInput(corefile("b")))
	if err != nil {
		t.Fatal(err)
	}
	r.instance = next
	expect("with another file", "", "2")
}
