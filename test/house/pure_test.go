package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// effects are what a decision has nothing to do with: sockets, files, other goroutines, and what was found out before.
var effects = []string{"context", "net", "net/http", "os", "sync", "sync/atomic", "syscall", module + "plugin/pkg/resolver/clock", module + "plugin/pkg/resolver/store"}

// What a validator decides is a function of what it is given: no I/O, no clock, no cache.
func TestValidateIsPure(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "plugin", "pkg", "resolver", "validate", "*.go"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if name, _ := strconv.Unquote(i.Path.Value); slices.Contains(effects, name) {
				t.Errorf("%s imports %s", filepath.Base(path), name)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s begins a goroutine", filepath.Base(path))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "NewTicker"}, n.Sel.Name) {
					t.Errorf("%s has time.%s", filepath.Base(path), n.Sel.Name)
				}
			}
			return true
		})
	}
}
