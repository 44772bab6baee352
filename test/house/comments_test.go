package house

import (
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// share is how much of a package's code is explained: lines that have code, and lines that have a comment; a line may be both.
type share struct {
	code, comment int
	long          []string // lines with a comment that are too long, by file and number
}

// maxColumns is the length of a line with a comment; a tab counts as four.
const maxColumns = 120

func (s *share) read(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	file := fset.AddFile(path, -1, len(text))
	var sc scanner.Scanner
	sc.Init(file, text, nil, scanner.ScanComments)
	code, comment := map[int]bool{}, map[int]bool{}
	for {
		pos, tok, lit := sc.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		for i := range strings.Count(lit, "\n") + 1 {
			if tok == token.COMMENT {
				comment[file.Line(pos)+i] = true
			} else {
				code[file.Line(pos)+i] = true
			}
		}
	}
	s.code, s.comment = s.code+len(code), s.comment+len(comment)
	lines := strings.Split(string(text), "\n")
	for _, n := range slices.Sorted(maps.Keys(comment)) {
		if line := strings.ReplaceAll(lines[n-1], "\t", "    "); utf8.RuneCountInString(line) > maxColumns &&
			strings.Contains(line, "//") && !strings.Contains(line, "//nolint:") {
			s.long = append(s.long, place(path)+": "+strings.TrimSpace(line))
		}
	}
}

// explained are the folders whose packages must be commented so much.
func explained(dir string) bool {
	return strings.HasPrefix(dir, "core/internal/") || dir == "core/dnsserver" || strings.HasPrefix(dir, "plugin/pkg/")
}

// leastShare is how many lines of comments there are at least, in percent of the lines of code.
const leastShare = 20

// fallsShort are packages with fewer, and what they have at least. A figure may only rise; at leastShare it goes.
var fallsShort = map[string]int{
	"core/internal/coretest":   13,
	"plugin/pkg/proxy":         15,
	"plugin/pkg/zone":          18,
	"plugin/pkg/zone/zonetest": 11,
	"plugin/pkg/zonefile":      12,
}

func TestCommentShare(t *testing.T) {
	x := theIndex()(t)
	for dir, p := range x.packages {
		if !explained(dir) {
			continue
		}
		has, least := 100*p.lines.comment/max(1, p.lines.code), leastShare
		if was, ok := fallsShort[dir]; ok {
			least = was
			if has >= leastShare {
				t.Errorf("%s has %d comment lines for 100 of code: it needs no exception", dir, has)
			}
		}
		if has < least {
			t.Errorf("%s has %d comment lines for 100 of code, not %d (%d for %d)", dir, has, least, p.lines.comment, p.lines.code)
		}
	}
	for dir := range fallsShort {
		if x.packages[dir] == nil {
			t.Errorf("there is no %s", dir)
		}
	}
}

// TestCommentColumns finds lines with a comment that do not fit beside another window.
func TestCommentColumns(t *testing.T) {
	for dir, p := range theIndex()(t).packages {
		if explained(dir) || dir == "plugin" || dir == "request" || dir == "coremain" || strings.HasPrefix(dir, "examples/plugin") {
			for _, l := range p.lines.long {
				t.Errorf("longer than %d columns: %s", maxColumns, l)
			}
		}
	}
}

// startAt is what a package comment says of where to begin to read: "Start at A; then b.go. ... and at C".
var startAt = regexp.MustCompile(`(?:Start at|[;,] then|, and at) ([A-Za-z_][\w.]*\w)`)

// TestPackageComments looks at the comment of each package: that there is one, and that what it says one starts at is there.
func TestPackageComments(t *testing.T) {
	x := theIndex()(t)
	for dir, p := range x.packages {
		doc := strings.Join(strings.Fields(p.doc), " ")
		switch {
		case p.name == "main" && strings.HasPrefix(doc, "Command "), strings.HasPrefix(doc, "Package "+p.name+" "):
		default:
			t.Errorf("%s has no package comment", dir)
			continue
		}
		if p.name == "main" {
			continue
		}
		_, doc, ok := strings.Cut(doc, "Start at")
		if !ok {
			if must := strings.SplitN(dir, "/", 2)[0]; must == "core" || must == "plugin" || must == "request" || must == "coremain" {
				t.Errorf("%s: its comment does not say where to start", dir)
			}
			continue
		}
		for _, m := range startAt.FindAllStringSubmatch("Start at"+doc, -1) {
			if strings.HasSuffix(m[1], ".go") {
				if !x.files[dir+"/"+m[1]] {
					t.Errorf("%s: one starts at %s, which is not there", dir, m[1])
				}
			} else if _, ok := x.resolve(p, m[1]); !ok {
				t.Errorf("%s: one starts at %s, which is not there", dir, m[1])
			}
		}
	}
}
