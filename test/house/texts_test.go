package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// sources calls see with each file of the module.
func sources(t *testing.T, see func(path string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		n++
		see(path)
		return nil
	})
	if err != nil || n < 300 {
		t.Fatalf("%d files, %v", n, err)
	}
}

func TestFileNames(t *testing.T) {
	sources(t, func(path string) {
		name := filepath.Base(path)
		if filepath.Ext(name) == ".go" && strings.ContainsAny(name, "-ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			t.Errorf("%s: names of source files have neither hyphens nor capitals", path)
		}
		for _, vague := range []string{"util.go", "utils.go", "helpers.go", "common.go", "misc.go"} {
			if name == vague {
				t.Errorf("%s: the name says nothing", path)
			}
		}
	})
}

// proper are words with which an error text may begin though they are not lower case.
var proper = regexp.MustCompile(`^(DNS|TSIG|EDNS0?|HTTP|TLS|TTL|IP|URL|JSON|SOA|NS|NSEC3?|RRSIG|CNAME|TXT|Kubernetes|API|PROXY|` +
	// Texts that other servers of this kind print, and that are looked for in logs.
	`HTTPS3?|ACME|RR|AXFR|IXFR|ZONEMD|DNSKEY|DS|CIDR|NoError|DoH3?|DoQ|UDP|TCP|QUIC|Wrong|Unknown|Unable|Need|[A-Z][a-z]+ing )`)

// TestErrorTexts finds errors that begin with a capital.
func TestErrorTexts(t *testing.T) {
	checked := 0
	sources(t, func(path string) {
		if filepath.Ext(path) != ".go" {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			text, ok := call.Args[0].(*ast.BasicLit)
			if !ok || text.Kind != token.STRING || !isError(call.Fun) {
				return true
			}
			s, err := strconv.Unquote(text.Value)
			if err != nil || s == "" {
				return true
			}
			checked++
			if first := []rune(s); unicode.IsUpper(first[0]) && !proper.MatchString(s) {
				t.Errorf("%s: the error %q begins with a capital", path, s)
			}
			return true
		})
	})
	if checked < 200 {
		t.Errorf("only %d texts were looked at", checked)
	}
}

// isError reports whether a function makes an error, and not one that is only of a test.
func isError(f ast.Expr) bool {
	sel, ok := f.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && (x.Name == "errors" && sel.Sel.Name == "New" || x.Name == "fmt" && sel.Sel.Name == "Errorf")
}
