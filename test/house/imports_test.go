// Package house checks how the source is laid out: who imports whom, names of files, texts of errors.
package house

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/coredns/coredns/"

// exceptions are imports that go up, which exported signatures force.
var exceptions = map[string][]string{
	"plugin/pkg/expression": {"request", "plugin/metadata"},
	"plugin/pkg/fuzz":       {"plugin", "plugin/test"},
	"plugin/pkg/proxy":      {"plugin", "request"},
	"plugin/pkg/replacer":   {"plugin/metadata", "request"},
	"plugin/pkg/trace":      {"plugin"},
	"plugin/pkg/upstream":   {"plugin", "request"},
	"plugin":                {"plugin/etcd/msg"},
	"plugin/metrics":        {"coremain"}, // the version is a metric
	"plugin/kubernetes":     {"coremain", "plugin/etcd/msg", "plugin/transfer"},
	"plugin/etcd":           {"plugin/transfer"},
	"plugin/file":           {"plugin/transfer"},
	"plugin/auto":           {"plugin/file", "plugin/transfer"},
	"plugin/dynupdate":      {"plugin/file", "plugin/transfer", "plugin/tsig"},
	"plugin/forward":        {"plugin/dnstap", "plugin/dnstap/msg"},
	"plugin/recurse":        {"plugin/dnstap", "plugin/dnstap/msg"},
	"plugin/secondary":      {"plugin/file", "plugin/transfer"},
	"plugin/grpc":           {"pb"},
	"plugin/k8s_external":   {"plugin/etcd/msg", "plugin/transfer"},
	"plugin/sign":           {"plugin/file"},
	"plugin/file/mirror":    {"plugin/file", "plugin/transfer"},
	"plugin/route53":        {"plugin/file/mirror"},
	"plugin/azure":          {"plugin/file/mirror"},
	"plugin/clouddns":       {"plugin/file/mirror"},
}

// friends are plugins that others may build on.
var friends = []string{"plugin/metadata", "plugin/metrics"}

// may reports whether the package from may import the package to; both are below the module.
func may(from, to string) bool {
	if slices.Contains(exceptions[from], to) || to == from || strings.HasPrefix(to, from+"/") && from != "plugin" {
		return true
	}
	helper := strings.HasPrefix(to, "plugin/pkg/")
	switch {
	case from == "plugin/pkg/eventloop":
		return false
	case from == "plugin/pkg/wire":
		return to == "plugin/pkg/eventloop"
	case strings.HasPrefix(from, "plugin/pkg/"), from == "request":
		return helper
	case from == "plugin":
		return helper || to == "request"
	case from == "plugin/metrics/vars":
		return helper || to == "plugin" || to == "request"
	case strings.HasPrefix(from, "core/internal/"):
		return coreMay(strings.TrimPrefix(from, "core/internal/"), to)
	case from == "core/dnsserver":
		return helper || to == "plugin" || to == "request" || to == "pb" || to == "plugin/metrics/vars" ||
			strings.HasPrefix(to, "core/internal/") && to != "core/internal/coretest"
	case from == "bench":
		return helper
	case from == "coremain":
		return helper || to == "core/dnsserver" || to == "core/custom"
	case from == "core":
		return to == "core/dnsserver"
	case from == "core/plugin", from == "", strings.HasPrefix(from, "test"):
		return true
	case strings.HasSuffix(from, "test") && to == "plugin/test": // they are for tests only
		return true
	case from == "pb":
		return false
	}
	// A plugin: its own folder, what is below all plugins, and friends.
	name := strings.Split(from, "/")[1]
	return helper || to == "plugin" || to == "request" || to == "core/dnsserver" || to == "plugin/metrics/vars" ||
		strings.HasPrefix(to, "plugin/"+name+"/") || slices.Contains(friends, to)
}

func TestImportsPointDown(t *testing.T) {
	list := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	list.Dir = filepath.Join("..", "..")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages, used, seen := 0, map[string]bool{}, map[string]bool{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; packages++ {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		from := strings.TrimPrefix(p.ImportPath+"/", module)
		from = strings.TrimSuffix(from, "/")
		if in, ok := strings.CutPrefix(from, "core/internal/"); ok {
			seen[in] = true
			if rows[in].noNet && (slices.Contains(p.Imports, "net") || slices.Contains(p.Imports, "net/http")) {
				t.Errorf("%s imports net", from)
			}
		}
		for _, i := range p.Imports {
			to, ok := strings.CutPrefix(i, module)
			if !ok {
				continue
			}
			if !may(from, to) {
				t.Errorf("%s imports %s", from, to)
			}
			if slices.Contains(exceptions[from], to) {
				used[from+" "+to] = true
			}
		}
	}
	if packages < 60 {
		t.Fatalf("only %d packages were looked at", packages)
	}
	for in := range seen {
		if _, ok := rows[in]; !ok {
			t.Errorf("core/internal/%s has no row in borders_test.go", in)
		}
	}
	for in := range rows {
		if !seen[in] {
			t.Errorf("there is no core/internal/%s", in)
		}
	}
	for from, all := range exceptions {
		for _, to := range all {
			if !used[from+" "+to] {
				t.Errorf("%s does not import %s: it needs no exception", from, to)
			}
		}
	}
}

func TestMay(t *testing.T) {
	for pair, want := range map[string]bool{
		"plugin/pkg/wire plugin/pkg/log":                   false,
		"plugin/pkg/log plugin":                            false,
		"plugin request":                                   true,
		"request plugin":                                   false,
		"core/dnsserver plugin/cache":                      false,
		"core/dnsserver plugin/metrics/vars":               true,
		"plugin/cache plugin/file":                         false,
		"plugin/cache plugin/metadata":                     true,
		"plugin/kubernetes/store plugin/kubernetes/client": true,
		"coremain plugin/file":                             false,
		"core/dnsserver core/internal/udp":                 true,
		"core/dnsserver core/internal/coretest":            false,
		"core/internal/udp core/dnsserver":                 false,
		"core/internal/udp core/internal/chain":            false,
		"core/internal/udp core/internal/exec":             true,
		"core/internal/udp plugin/cache":                   false,
		"core/internal/http2 plugin/pkg/wire":              true,
		"core/internal/http2 request":                      false,
		"core/internal/reply plugin":                       false,
		"plugin/cache core/internal/reply":                 false,
	} {
		from, to, _ := strings.Cut(pair, " ")
		if may(from, to) != want {
			t.Errorf("%s may import %s: %v", from, to, !want)
		}
	}
}
