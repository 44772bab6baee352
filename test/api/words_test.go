package api

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Programs for systems with words of 32 bits are released, but nobody builds them from day to day. What overflows
// there is found by the types alone.
func TestSmallWords(t *testing.T) {
	s := sourcesOf(t)
	exports := map[string]string{} // of what has constants that differ
	for _, p := range listSmall(t, "-export", "math", "math/bits", "strconv") {
		exports[p.ImportPath] = p.Export
	}
	imports := importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
		if file := exports[path]; file != "" {
			return os.Open(file)
		}
		return s.export(path)
	})
	conf := types.Config{Importer: imports, Sizes: types.SizesFor("gc", "386"), Error: func(err error) { t.Error(err) }}
	n := 0
	for _, p := range listSmall(t, "./...") {
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		conf.Check(p.ImportPath, s.fset, files, nil)
		n += len(files)
	}
	if n < 1000 {
		t.Errorf("looked at %d files only", n)
	}
}

// listSmall is what go list tells of packages where words have 32 bits.
func listSmall(t *testing.T, args ...string) (all []*listed) {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Export,GoFiles"}, args...)...)
	list.Dir = filepath.Join("..", "..")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=386", "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err == nil {
		all, err = decodeListed(out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}
