package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

const (
	longestFile = 400 // lines
	longestFunc = 60  // lines, without its comment
)

// TestFilesAndFunctionsAreShort finds files and functions that are too long for a reader. Tests are as long as they have to be.
func TestFilesAndFunctionsAreShort(t *testing.T) {
	looked := 0
	sources(t, func(path string) {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(f) {
			return
		}
		looked++
		if n := fset.File(f.FileStart).LineCount(); n > longestFile+1 { // the last line is empty
			t.Errorf("%s has %d lines, more than %d", place(path), n-1, longestFile)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > longestFunc {
				t.Errorf("%s: %s has %d lines, more than %d", place(path), fn.Name.Name, n, longestFunc)
			}
		}
	})
	if looked < 500 {
		t.Errorf("only %d files were looked at", looked)
	}
}
