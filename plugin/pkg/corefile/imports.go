package corefile

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"
)

// CheckImports follows the import lines of a Corefile, whose file name and text are given, and fails
// if a file imports itself, directly or by way of others. The parser of Corefiles would read such a file over and over.
//
// Everything else that is wrong with imports is for the parser to tell. Imports in snippets are not followed.
func CheckImports(filename string, body []byte) error {
	abs, err := filepath.Abs(filename)
	if err != nil {
		return nil
	}
	return (&importer{root: abs, named: filename, checked: map[string]bool{}}).file(abs, body)
}

// The parser follows imports with a limit of their number only: a file that imports itself has it read for minutes. So
// cycles are looked for before it begins, with the lines that are to blame.

// importer walks files depth first.
type importer struct {
	root    string          // the file that is checked
	named   string          // as it was named
	by      Word            // the import that is followed
	stack   []string        // the files that are being read, each imported by the one before
	checked map[string]bool // files that lead to no cycle
}

func (i *importer) file(name string, body []byte) error {
	if i.checked[name] {
		return nil
	}
	if at := slices.Index(i.stack, name); at >= 0 {
		return ErrorAt(i.by, "import cycle: %s: take out one of these imports", strings.Join(append(i.stack[at:], name), " imports "))
	}
	i.stack = append(i.stack, name)
	for _, by := range imports(name, body) {
		pattern := by.Text
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(filepath.Dir(name), pattern)
		}
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				continue
			}
			if i.by = by; i.named != "" && by.File == i.root {
				i.by.File = i.named
			}
			if err := i.file(f, text); err != nil {
				return err
			}
		}
	}
	i.stack = i.stack[:len(i.stack)-1]
	i.checked[name] = true
	return nil
}

// imports returns the arguments of the import lines in body that may be files.
func imports(name string, body []byte) (patterns []Word) {
	d := caddyfile.NewDispenser(name, bytes.NewReader(body))
	var snippets []string
	depth, inSnippet := 0, false
	for line := 0; d.Next(); {
		first := d.Line() > line
		line = d.Line() + strings.Count(d.Val(), "\n")
		switch v := d.Val(); {
		case v == "{":
			depth++
		case v == "}":
			if depth--; depth <= 0 {
				inSnippet = false
			}
		case first && depth == 0 && strings.HasPrefix(v, "(") && strings.HasSuffix(v, ")"):
			snippets = append(snippets, v[1:len(v)-1])
			inSnippet = true
		case first && v == "import" && !inSnippet && d.NextArg():
			line = d.Line()
			if arg, _ := expandEnv(d.Val()); !slices.Contains(snippets, arg) {
				patterns = append(patterns, Word{Text: arg, Raw: d.Val(), File: name, Line: d.Line()})
			}
		}
	}
	return patterns
}
