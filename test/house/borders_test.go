package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// row is what a package of core/internal may import of ours, beside plugin/pkg, which all may.
type row struct {
	core     string // packages of core/internal
	other    string // packages elsewhere
	noPlugin bool   // does not know what a plugin is: repeats the row, for who widens it
	noNet    bool   // knows no sockets and no addresses of package net
}

// rows have the packages of core/internal, lowest first: a row names only rows above it. chain and those from service on do not know each
// other; coretest makes both, and is for tests.
var rows = map[string]row{
	"caddystate": {noPlugin: true, noNet: true},
	"reusegroup": {noPlugin: true, noNet: true},
	"unsent":     {noPlugin: true, noNet: true},
	"reply":      {other: "request", noPlugin: true},
	"chain":      {core: "reply", other: "plugin plugin/metrics/vars request"},
	"service":    {core: "reply", other: "plugin plugin/metrics/vars", noNet: true},
	"exec":       {core: "reply service", other: "plugin/metrics/vars request", noPlugin: true, noNet: true},
	"conn":       {core: "exec service unsent", other: "plugin"},
	"udp":        {core: "exec reply reusegroup service", other: "plugin"},
	"tcp":        {core: "conn exec reply service", noPlugin: true, noNet: true},
	"http2":      {core: "conn unsent", noPlugin: true},
	"quicconn":   {core: "conn service unsent", noPlugin: true},
	"doh":        {core: "conn exec http2 quicconn reply service unsent", noPlugin: true},
	"doq":        {core: "conn exec quicconn reply service unsent", other: "plugin/metrics/vars", noPlugin: true},
	"grpcdns":    {core: "conn exec reply service unsent", other: "pb", noPlugin: true},
	"coretest":   {core: "chain reply service", other: "plugin plugin/test test/clients"},
}

// order is that of the rows: who stands right may import who stands left.
var order = strings.Fields("caddystate reusegroup unsent reply chain service exec conn udp tcp http2 quicconn doh doq grpcdns coretest")

// coreMay reports whether core/internal/from may import to.
func coreMay(from, to string) bool {
	if in, ok := strings.CutPrefix(to, "core/internal/"); ok {
		return slices.Contains(strings.Fields(rows[from].core), in)
	}
	return strings.HasPrefix(to, "plugin/pkg/") || slices.Contains(strings.Fields(rows[from].other), to)
}

// TestRowsPointLeft finds a row that goes against the order, or against what it says itself.
func TestRowsPointLeft(t *testing.T) {
	if len(order) != len(rows) {
		t.Errorf("%d packages stand in the order, %d have a row", len(order), len(rows))
	}
	for name, r := range rows {
		at := slices.Index(order, name)
		for _, to := range strings.Fields(r.core) {
			if i := slices.Index(order, to); i < 0 || i >= at {
				t.Errorf("%s may import %s, which does not stand left of it", name, to)
			}
		}
		for _, to := range strings.Fields(r.other) {
			if name != "coretest" && !slices.Contains([]string{"pb", "plugin", "plugin/metrics/vars", "request"}, to) {
				t.Errorf("%s may import %s, and is to know no plugin", name, to)
			}
		}
		if r.noPlugin && slices.Contains(strings.Fields(r.other), "plugin") {
			t.Errorf("%s may import plugin, and may not", name)
		}
	}
}

// maxNames is how many names may cross a border. A border with more is in the wrong place.
const maxNames = 12

// wideDoors are packages of core/internal of which all that import them together use more than maxNames, with today's number. None of them
// may grow; one that shrinks takes its number down.
var wideDoors = map[string]int{"conn": 20}

// TestBorders counts the package-level names that cross each border in core, and those that each package shows to all others.
func TestBorders(t *testing.T) {
	borders, doors := map[string]map[string]bool{}, map[string]map[string]bool{}
	add := func(m map[string]map[string]bool, key, name string) {
		if m[key] == nil {
			m[key] = map[string]bool{}
		}
		m[key][name] = true
	}
	sources(t, func(path string) {
		from, ok := strings.CutPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")
		if !ok || !strings.HasPrefix(from, "core/") || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return
		}
		coreNames(t, path, func(to, name string) {
			add(borders, from+" to "+to, name)
			if from != "core/internal/coretest" {
				add(doors, to, name)
			}
		})
	})
	for border, names := range borders {
		if len(names) > maxNames {
			t.Errorf("%d names cross the border from %s: %v", len(names), border, sorted(names))
		}
	}
	for to, names := range doors {
		most := maxNames
		if n, ok := wideDoors[to]; ok {
			most = n
			if len(names) < n {
				t.Errorf("%d names of core/internal/%s are used from outside: its exception of %d shrinks", len(names), to, n)
			}
		}
		if len(names) > most {
			t.Errorf("%d names of core/internal/%s are used from outside, not %d: %v", len(names), to, most, sorted(names))
		}
	}
	if len(borders) < 30 || len(doors) < 12 {
		t.Errorf("only %d borders of %d packages were found", len(borders), len(doors))
	}
}

// coreNames calls see with each use that a file makes of a name of a package of core/internal.
func coreNames(t *testing.T, path string, see func(to, name string)) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{} // what the file calls a package: its folder
	for _, i := range f.Imports {
		in, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"core/internal/")
		if !ok {
			continue
		}
		known[in] = in
		if i.Name != nil {
			delete(known, in)
			known[i.Name.Name] = in
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && known[x.Name] != "" && sel.Sel.IsExported() {
			see(known[x.Name], sel.Sel.Name)
		}
		return true
	})
}

func sorted(names map[string]bool) (all []string) {
	for n := range names {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}
