package deploy

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test"

	"github.com/miekg/dns"
)

// expressions are those of all panels of the dashboard, by the panels' titles.
func expressions(t *testing.T) map[string][]string {
	t.Helper()
	type panel struct {
		Title   string
		Targets []struct{ Expr string }
		Panels  []panel
	}
	var dashboard panel
	if err := json.Unmarshal([]byte(read(t, here("monitoring", "dashboard.json"))), &dashboard); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	var walk func(p panel)
	walk = func(p panel) {
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], target.Expr)
		}
		for _, inner := range p.Panels {
			walk(inner)
		}
	}
	walk(dashboard)
	return all
}

// rare are metrics of what does not come about in this test, or has no series before it does: stale answers, early
// refreshing, replies that are forged, and what a server does that has too much to do. For these it is enough that
// Prometheus takes the expression, and that a README tells of the metric, which test/house holds against the source.
var rare = []string{
	"coredns_cache_served_stale_total", "coredns_cache_prefetch_total", "coredns_cache_evictions_total", "coredns_proxy_healthcheck_failures_total",
	"coredns_proxy_replies_ignored_total", "coredns_dns_limits_reached_total", "coredns_dns_queries_dropped_total", "coredns_shed_dropped_total",
}

// Prometheus scrapes a server, and has data for each panel of the dashboard.
func TestDashboard(t *testing.T) {
	prometheus := tool(t, "prometheus", "prometheus")
	metrics, web := loopback.Addr(), loopback.Addr()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	up := &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(192, 0, 2, 1)}}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = up.ActivateAndServe() }()
	defer up.Shutdown()
	i, udp, tcp, err := test.CoreDNSServerAndPorts(fmt.Sprintf(".:0 {\nbind 127.0.0.1\nprometheus %s\ncache\nshed\nforward . %s\n}\n", metrics, pc.LocalAddr()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		i.ShutdownCallbacks()
		test.CoreDNSServerStop(i)
	}()

	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	config := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: coredns, static_configs: [{targets: [%q]}]}]\n", metrics)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(prometheus, "--config.file="+file, "--storage.tsdb.path="+dir, "--web.listen-address="+web, "--log.level=error")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()

	readmes := ""
	for _, f := range glob(t, "../../plugin/*/README.md") {
		readmes += read(t, f)
	}
	for _, m := range rare {
		if !strings.Contains(readmes, "`"+m+"{") && !strings.Contains(readmes, "`"+m+"`") {
			t.Errorf("no README tells of %s", m)
		}
	}
	left := expressions(t)
	if len(left) < 15 {
		t.Fatalf("%d panels", len(left))
	}
	conn, err := dns.Dial("tcp", tcp) // which is open, for the panel of connections
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for end, n := time.Now().Add(40*time.Second), 0; len(left) > 0 && time.Now().Before(end); n++ {
		for _, name := range []string{"again.example.org.", fmt.Sprintf("n%d.example.org.", n)} {
			if _, err := dns.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), udp); err != nil {
				t.Fatal(err)
			}
		}
		if n%20 == 0 {
			for title, all := range left {
				all = slices.DeleteFunc(slices.Clone(all), func(expr string) bool {
					return slices.ContainsFunc(rare, func(m string) bool { return strings.Contains(expr, m) }) && valid(t, web, expr) || has(t, web, expr)
				})
				if left[title] = all; len(all) == 0 {
					delete(left, title)
				}
			}
		}
		time.Sleep(25 * time.Millisecond)
	}
	for title, all := range left {
		t.Errorf("panel %q has no data for %q", title, all)
	}
}

// glob is the files that a pattern stands for, of which there are some.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil || len(all) == 0 {
		t.Fatalf("%s: %v, %v", pattern, all, err)
	}
	return all
}

// query is what Prometheus answers to an expression of the dashboard.
func query(t *testing.T, web, expr string) (status string, results int) {
	t.Helper()
	expr = strings.NewReplacer("$__rate_interval", "10s", "$job", ".*", "$instance", ".*").Replace(expr)
	resp, err := http.Get("http://" + web + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return "", 0 // it is not there yet
	}
	defer resp.Body.Close()
	var answer struct {
		Status string
		Data   struct{ Result []any }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return "", 0
	}
	return answer.Status, len(answer.Data.Result)
}

func valid(t *testing.T, web, expr string) bool {
	t.Helper()
	status, _ := query(t, web, expr)
	return status == "success"
}

func has(t *testing.T, web, expr string) bool {
	t.Helper()
	_, n := query(t, web, expr)
	return n > 0
}
