package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// metricNames are the full names of the metrics that a folder defines, written out or by a function of its own that is told the name.
func metricNames(t *testing.T, folder string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	texts := map[string]string{} // constants
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.ValueSpec); ok && len(s.Values) == len(s.Names) {
				for i, name := range s.Names {
					if v, ok := s.Values[i].(*ast.BasicLit); ok && v.Kind == token.STRING {
						texts[name.Name], _ = strconv.Unquote(v.Value)
					}
				}
			}
			return true
		})
	}
	makers := map[string]string{} // functions that make a metric of their first argument: what stands before that
	for _, f := range files {
		for _, d := range f.Decls {
			fn, inFunc := d.(*ast.FuncDecl)
			ast.Inspect(d, func(n ast.Node) bool {
				lit, ok := n.(*ast.CompositeLit)
				if !ok {
					return true
				}
				prefix, name, ok := fullName(lit, texts)
				switch {
				case ok && name != "":
					names = append(names, prefix+name)
				case ok && inFunc:
					makers[fn.Name.Name] = prefix
				}
				return true
			})
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "BuildFQName" && len(call.Args) == 3 {
				names = append(names, "coredns_"+textOf(call.Args[1], texts)+"_"+textOf(call.Args[2], texts))
			}
			fn, ok := call.Fun.(*ast.Ident)
			if prefix := makers[nameOf(fn)]; ok && prefix != "" {
				if arg, ok := call.Args[0].(*ast.BasicLit); ok {
					name, _ := strconv.Unquote(arg.Value)
					names = append(names, prefix+name)
				}
			}
			return true
		})
	}
	return names
}

func nameOf(i *ast.Ident) string {
	if i == nil {
		return ""
	}
	return i.Name
}

// fullName is what a literal of CounterOpts and the like says of a metric's name: what stands before it, and the name, "" if a variable has
// it. It reports false for other literals.
func fullName(lit *ast.CompositeLit, texts map[string]string) (prefix, name string, ok bool) {
	sel, ok := lit.Type.(*ast.SelectorExpr)
	if !ok || !strings.HasSuffix(sel.Sel.Name, "Opts") {
		return "", "", false
	}
	prefix, ok = "coredns_", false
	for _, e := range lit.Elts {
		kv, isKV := e.(*ast.KeyValueExpr)
		if !isKV {
			continue
		}
		text := textOf(kv.Value, texts)
		switch nameOf(kv.Key.(*ast.Ident)) {
		case "Namespace":
			ok = true
		case "Subsystem":
			prefix += text + "_"
		case "Name":
			name = text
		}
	}
	return prefix, name, ok
}

// textOf is the string that an expression is, be it a constant; "" if it is none.
func textOf(e ast.Expr, texts map[string]string) (text string) {
	switch v := e.(type) {
	case *ast.BasicLit:
		text, _ = strconv.Unquote(v.Value)
	case *ast.Ident:
		text = texts[v.Name]
	}
	return text
}

var metricName = regexp.MustCompile("`(coredns_[a-z0-9_]+)")

// TestMetricsAreTold compares what OPERATIONS says of metrics with the source: those of the core and of plugin/pkg stand there, those of a
// plugin in its README, and none that there is not.
func TestMetricsAreTold(t *testing.T) {
	var defined []string
	operations := page(t, "docs/OPERATIONS.md")
	for dir := range theIndex()(t).packages {
		if strings.HasPrefix(dir, "test") || strings.HasPrefix(dir, "examples") {
			continue
		}
		names := metricNames(t, filepath.Join("..", "..", dir))
		defined = append(defined, names...)
		text, where := operations, "docs/OPERATIONS.md"
		if p := strings.Split(dir, "/"); len(names) > 0 && len(p) > 1 && p[0] == "plugin" && p[1] != "pkg" && dir != "plugin/metrics/vars" {
			where = "plugin/" + p[1] + "/README.md"
			if dir == "plugin/file/mirror" {
				where = "plugin/route53/README.md" // one of those that build on it
			}
			text = page(t, where)
		}
		for _, name := range names {
			if !strings.Contains(text, "`"+name) {
				t.Errorf("%s does not tell of %s", where, name)
			}
		}
	}
	for _, m := range metricName.FindAllStringSubmatch(operations, -1) {
		if !slices.Contains(defined, m[1]) {
			t.Errorf("there is no metric %s", m[1])
		}
	}
	readmes, err := filepath.Glob("../../plugin/*/README.md")
	if err != nil || len(readmes) < 50 {
		t.Fatalf("%d READMEs, %v", len(readmes), err)
	}
	for _, path := range readmes {
		for _, m := range metricName.FindAllStringSubmatch(page(t, place(path)), -1) {
			if !slices.Contains(defined, m[1]) && !strings.HasSuffix(m[1], "_") {
				t.Errorf("%s: there is no metric %s", path, m[1])
			}
		}
	}
	if len(defined) < 60 {
		t.Errorf("only %d metrics were found", len(defined))
	}
}

var (
	definition  = regexp.MustCompile(`fqName: "(coredns_\w+)",.* constLabels: {}, variableLabels: {(.*)}}$`)
	metricTold  = regexp.MustCompile("`(coredns_[a-z0-9_]+)(?:{([^}.`]*)})?`")
	valueOfOnes = regexp.MustCompile(`="[^"]*"`)
)

// TestMetricsAreToldWithTheirLabels compares the labels that READMEs name with those of the metrics that a server with all plugins has.
func TestMetricsAreToldWithTheirLabels(t *testing.T) {
	labels := map[string]string{} // by metric
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		prometheus.DefaultRegisterer.(*prometheus.Registry).Describe(descriptions)
	}()
	for d := range descriptions {
		if m := definition.FindStringSubmatch(d.String()); m != nil {
			labels[m[1]] = m[2]
		}
	}
	if len(labels) < 100 {
		t.Errorf("only %d metrics are registered", len(labels))
	}
	readmes, err := filepath.Glob("../../plugin/*/README.md")
	if err != nil || len(readmes) < 50 {
		t.Fatalf("%d READMEs, %v", len(readmes), err)
	}
	for _, path := range readmes {
		for _, m := range metricTold.FindAllStringSubmatch(page(t, place(path)), -1) {
			told := strings.ReplaceAll(valueOfOnes.ReplaceAllString(m[2], ""), " ", "")
			if want, ok := labels[m[1]]; ok && told != want { // xdp has none elsewhere than on Linux
				t.Errorf("%s: %s has the labels {%s}, not {%s}", path, m[1], want, told)
			}
		}
	}
}

// label is a label of metadata that a plugin sets, as a whole or the begin of it.
var label = regexp.MustCompile(`SetValueFunc\(\w+, "([a-z0-9-]+/[a-z0-9/-]*)"`)

// TestLabelsAreTold looks for each label of metadata in the README of the plugin that sets it.
func TestLabelsAreTold(t *testing.T) {
	told := 0
	sources(t, func(path string) {
		parts := strings.Split(filepath.ToSlash(path), "/")
		at := slices.Index(parts, "plugin")
		if at < 0 || len(parts) < at+3 || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range label.FindAllStringSubmatch(string(source), -1) {
			name := parts[at+1]
			if name == "cache" { // it passes on those of others
				continue
			}
			told++
			if readme := "plugin/" + name + "/README.md"; !strings.Contains(page(t, readme), "`"+m[1]) {
				t.Errorf("%s does not tell of the label %s", readme, m[1])
			}
		}
	})
	if told < 10 {
		t.Errorf("only %d labels were found", told)
	}
}
