package house

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/coredns/coredns/core/plugin" // their flags, if they have any
	_ "github.com/coredns/coredns/coremain"
	"github.com/coredns/coredns/plugin/pkg/corefile"
)

// TestFlags compares the table of flags with those of the program.
func TestFlags(t *testing.T) {
	told := map[string]bool{}
	for _, row := range rowsOf(section(t, "docs/OPERATIONS.md", "Flags")) {
		for _, q := range quotedIn(row[0]) {
			name, _, _ := strings.Cut(strings.TrimPrefix(q, "-"), "=")
			name, _, _ = strings.Cut(name, " ")
			told[name] = true
			if flag.Lookup(name) == nil {
				t.Errorf("there is no flag -%s", name)
			}
		}
	}
	flag.VisitAll(func(f *flag.Flag) {
		if !told[f.Name] && !strings.HasPrefix(f.Name, "test.") {
			t.Errorf("the flag -%s is not told", f.Name)
		}
	})
}

// constants evaluates those of a folder.
type constants struct {
	t      *testing.T
	folder string
	values map[string]ast.Expr
}

func constantsOf(t *testing.T, folder string, files ...string) *constants {
	t.Helper()
	c := &constants{t, folder, map[string]ast.Expr{}}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", folder, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				spec := s.(*ast.ValueSpec)
				for i, n := range spec.Names[:min(len(spec.Names), len(spec.Values))] { // iota repeats: such are no limits
					c.values[n.Name] = spec.Values[i]
				}
			}
		}
	}
	return c
}

var units = map[string]int64{"Second": int64(time.Second), "Millisecond": int64(time.Millisecond), "Minute": int64(time.Minute),
	"Hour": int64(time.Hour)}

// value is what an expression comes to, and whether it is a time.
func (c *constants) value(e ast.Expr) (n int64, isTime bool) {
	c.t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		if err == nil {
			return n, false
		}
	case *ast.UnaryExpr:
		n, isTime = c.value(e.X)
		return -n, isTime
	case *ast.Ident:
		return c.value(c.values[e.Name])
	case *ast.BinaryExpr:
		x, xt := c.value(e.X)
		y, yt := c.value(e.Y)
		switch e.Op {
		case token.MUL:
			return x * y, xt || yt
		case token.SHL:
			return x << y, xt
		}
	case *ast.SelectorExpr:
		switch of := e.X.(*ast.Ident).Name; of {
		case "time":
			return units[e.Sel.Name], true
		case "memory":
			in := constantsOf(c.t, "plugin/pkg/memory", "memory.go")
			return in.value(in.values[e.Sel.Name])
		case "udp":
			in := constantsOf(c.t, "core/internal/udp", "udp.go")
			return in.value(in.values[e.Sel.Name])
		}
	}
	c.t.Fatalf("%s: a constant of a form that is not known: %#v", c.folder, e)
	return 0, false
}

// spellings are the ways in which a page may write a value.
func spellings(n int64, isTime bool) (all []string) {
	if isTime {
		for unit, name := range map[time.Duration]string{time.Millisecond: "ms", time.Second: "s", time.Minute: "min", time.Hour: "h"} {
			if n%int64(unit) == 0 {
				all = append(all, fmt.Sprintf("%d %s", n/int64(unit), name))
			}
		}
		return all
	}
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && n > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	all = append(all, digits)
	for shift, unit := range map[int]string{10: "KiB", 20: "MiB", 30: "GiB"} {
		if n > 0 && n%(1<<shift) == 0 && n>>shift < 1024 {
			all = append(all, fmt.Sprintf("%d %s", n>>shift, unit))
		}
	}
	return all
}

// TestLimits compares the table of limits with limits.go.
func TestLimits(t *testing.T) {
	c, told := constantsOf(t, "core/dnsserver", "limits.go"), map[string]bool{}
	for _, row := range rowsOf(section(t, "docs/TUNING.md", "Limits of the core")) {
		names, texts := quotedIn(row[len(row)-1]), strings.Split(row[1], "; ")
		if len(names) != len(texts) {
			t.Errorf("%v: %d values for %d constants", row, len(texts), len(names))
			continue
		}
		for i, name := range names {
			told[name] = true
			if c.values[name] == nil {
				t.Errorf("there is no limit %s", name)
				continue
			}
			if want := spellings(c.value(c.values[name])); !slices.Contains(want, texts[i]) {
				t.Errorf("%s is %v, not %s", name, want, texts[i])
			}
		}
	}
	for name := range c.values {
		if !told[name] {
			t.Errorf("the limit %s is not told", name)
		}
	}
}

// TestLimitsOfPlugins compares the table of plugins' limits with their constants, and the options with the READMEs.
func TestLimitsOfPlugins(t *testing.T) {
	rows := rowsOf(section(t, "docs/TUNING.md", "Limits of plugins"))
	if len(rows) < 20 {
		t.Errorf("only %d rows", len(rows))
	}
	for _, row := range rows {
		if len(row) != 5 {
			t.Errorf("a row of %d cells: %v", len(row), row)
			continue
		}
		for i, plugin := range strings.Split(row[0], "; ") {
			readme := page(t, "plugin/"+strings.Trim(plugin, "*")+"/README.md")
			for _, option := range append(quotedIn(row[3]), regexp.MustCompile(`\*\*\w+\*\*`).FindAllString(row[3], -1)...) {
				if i == 0 && !strings.Contains(readme, "\n* `"+option+"`") && !strings.Contains(readme, "`"+option+"`") && !strings.Contains(readme, option+" is") {
					t.Errorf("%s has no option %s", plugin, option)
				}
			}
		}
		var in *constants
		values := strings.Split(row[2], "; ")
		for _, name := range quotedIn(row[4]) {
			if strings.HasSuffix(name, ".go") {
				in = constantsOf(t, filepath.Dir(name), filepath.Base(name))
				continue
			}
			switch {
			case in == nil || in.values[name] == nil || len(values) == 0:
				t.Errorf("%v: no constant %s, or no value of it", row[:2], name)
				continue
			case !slices.Contains(spellings(in.value(in.values[name])), values[0]):
				t.Errorf("%s of %s is %v, not %s", name, row[0], spellings(in.value(in.values[name])), values[0])
			}
			values = values[1:]
		}
		if len(values) > 0 {
			t.Errorf("%v: no constants for %v", row[:2], values)
		}
	}
}

// TestMakeTargets compares the table of targets with the Makefile.
func TestMakeTargets(t *testing.T) {
	there, told := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `).FindAllStringSubmatch(page(t, "Makefile"), -1) {
		there[m[1]] = true
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "docs/OPERATIONS.md", "docs/PLUGINS.md", "docs/START.md", "docs/ENCRYPTION.md"} {
		for _, q := range quotedIn(page(t, name)) {
			target, ok := strings.CutPrefix(q, "make ")
			if !ok {
				continue
			}
			target, _, _ = strings.Cut(target, " ")
			if name == "CONTRIBUTING.md" {
				told[target] = true
			}
			if !there[target] {
				t.Errorf("%s: there is no %s", name, q)
			}
		}
	}
	for target := range there {
		if !told[target] {
			t.Errorf("CONTRIBUTING.md does not tell of make %s", target)
		}
	}
}

// TestDifferencesNameDirectives finds a directive that DIFFERENCES tells of, and that there is not.
func TestDifferencesNameDirectives(t *testing.T) {
	cfg := page(t, "plugin.cfg")
	told := 0
	for _, m := range regexp.MustCompile(`\*([a-z0-9_]+)\*`).FindAllStringSubmatch(page(t, "docs/DIFFERENCES.md"), -1) {
		told++
		if !regexp.MustCompile(`(?m)^` + m[1] + `:`).MatchString(cfg) {
			t.Errorf("there is no directive %s", m[1])
		}
	}
	if told < 20 {
		t.Errorf("only %d directives are told of", told)
	}
}

// TestReadmeNamesDirectives finds a directive that the table of plugins in the README lacks.
func TestReadmeNamesDirectives(t *testing.T) {
	readme := page(t, "README.md")
	directives := regexp.MustCompile(`(?m)^([a-z0-9_]+):`).FindAllStringSubmatch(page(t, "plugin.cfg"), -1)
	for _, m := range directives {
		if !strings.Contains(readme, "*"+m[1]+"*") {
			t.Errorf("README.md does not tell of *%s*", m[1])
		}
	}
	if len(directives) < 50 {
		t.Errorf("plugin.cfg has only %d directives", len(directives))
	}
}

// optionsOfCoreDNS is what directives of CoreDNS 1.14.7 have in their blocks.
var optionsOfCoreDNS = map[string]string{
	"acl":          "allow block filter drop",
	"auto":         "directory reload",
	"azure":        "access client environment fallthrough secret subscription tenant",
	"bind":         "except",
	"cache":        "denial disable keepttl prefetch serve_stale serve_stale_policy servfail success",
	"chaos":        "",
	"clouddns":     "credentials fallthrough",
	"dns64":        "allow_ipv4 prefix translate_all",
	"dnssec":       "cache_capacity key",
	"dnstap":       "extra identity skipverify tls version",
	"erratic":      "delay drop large truncate",
	"errors":       "consolidate stacktrace",
	"etcd":         "credentials endpoint fallthrough max-lease-ttl min-lease-ttl path tls",
	"file":         "fallthrough reload reload_by_mtime",
	"forward":      "doh_method except expire failfast_all_unhealthy_upstreams failover force_tcp health_check max_age max_concurrent max_connect_attempts max_fails max_idle_conns next next_on_nodata policy prefer_udp read_timeout resolver source_address tls tls_servername",
	"geoip":        "edns-subnet",
	"grpc":         "except fallthrough policy tls tls_servername",
	"grpc_server":  "max_connections max_streams",
	"header":       "query response",
	"health":       "lameduck",
	"hosts":        "fallthrough fallthrough_unsupported no_reverse reload ttl",
	"https":        "max_connections",
	"https3":       "max_connections max_streams",
	"k8s_external": "apex fallthrough headless ttl",
	"kubernetes":   "apiserver_burst apiserver_max_inflight apiserver_qps endpoint endpoint_pod_names fallthrough ignore kubeconfig labels multicluster namespace_labels namespaces noendpoints pods startup_timeout tls ttl zonal",
	"loadbalance":  "prefer reload",
	"local":        "localhost_prefix",
	"log":          "class",
	"loop":         "",
	"prometheus":   "runtime_metrics tls",
	"nomad":        "address filter token ttl",
	"pprof":        "block",
	"proxyproto":   "allow default udp_session_tracking",
	"quic":         "max_streams worker_pool_size",
	"ready":        "monitor",
	"route53":      "aws_access_key aws_endpoint credentials fallthrough refresh",
	"secondary":    "catalog fallthrough transfer",
	"sign":         "directory key",
	"template":     "additional answer authority ederror fallthrough match rcode",
	"timeouts":     "idle maxtcpqueries read write",
	"tls":          "acme ca ca_root client_auth email keylog resolver storage",
	"trace":        "client_server datadog_analytics_rate every service zipkin_max_backlog_size zipkin_max_batch_interval zipkin_max_batch_size",
	"transfer":     "source to",
	"tsig":         "require require_opcode secret secrets",
	"view":         "expr",
}

// TestDifferencesNameOptions looks for each option that a directive has beyond CoreDNS in the row of those.
func TestDifferencesNameOptions(t *testing.T) {
	told := map[string]map[string]bool{} // by directive
	for _, row := range rowsOf(section(t, "docs/DIFFERENCES.md", "In addition")) {
		for _, part := range strings.Split(row[1], ";") {
			for _, m := range regexp.MustCompile(`\*([a-z0-9_]+)\*`).FindAllStringSubmatch(part, -1) {
				if told[m[1]] == nil {
					told[m[1]] = map[string]bool{}
				}
				for _, option := range quotedIn(part) {
					told[m[1]][option] = true
				}
			}
		}
	}
	looked := 0
	for _, d := range corefile.Docs() {
		theirs, common := optionsOfCoreDNS[d.Name]
		if !common && told[d.Name] != nil { // a directive of ours
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^    ([a-z][a-z0-9_|-]*)`).FindAllStringSubmatch(d.Syntax, -1) {
			for _, option := range strings.Split(m[1], "|") {
				looked++
				if !slices.Contains(strings.Fields(theirs), option) && !told[d.Name][option] {
					t.Errorf("docs/DIFFERENCES.md does not tell of the option %s of %s", option, d.Name)
				}
			}
		}
	}
	if looked < 150 {
		t.Errorf("only %d options were looked at", looked)
	}
}
