package house

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// longest are the pages for people, and how many lines each may have: one that grows says less.
var longest = map[string]int{
	"README.md": 80, "CONTRIBUTING.md": 90, "docs/ARCHITECTURE.md": 220, "docs/GLOSSARY.md": 60, "docs/PLUGINS.md": 200,
	"docs/OPERATIONS.md": 180, "docs/DIFFERENCES.md": 80, "docs/TUNING.md": 120, "docs/START.md": 130, "docs/COREFILE.md": 120, "docs/FORWARDING.md": 130,
	"docs/RESOLVER.md": 100, "docs/ZONES.md": 150, "docs/ENCRYPTION.md": 120, "docs/KUBERNETES.md": 150, "docs/TROUBLESHOOTING.md": 100,
	"docs/MIGRATION.md": 200,
}

// page is a page's text.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section is what stands below a heading of a page, up to the next one of its kind.
func section(t *testing.T, name, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page(t, name), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", name, heading)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

// rowsOf are the cells of the tables in a text, without their heads.
func rowsOf(text string) (all [][]string) {
	head := true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			head = true
		case strings.HasPrefix(line, "|---"):
			head = false
		case !head:
			var cells []string
			for _, c := range strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00"), "|") {
				cells = append(cells, strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|")))
			}
			all = append(all, cells)
		}
	}
	return all
}

var quoted = regexp.MustCompile("`([^`\n]+)`")

// quotedIn is what stands in backquotes.
func quotedIn(text string) (all []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

func TestPagesAreShort(t *testing.T) {
	for name, most := range longest {
		if n := strings.Count(page(t, name), "\n"); n > most {
			t.Errorf("%s has %d lines, not %d", name, n, most)
		}
	}
}

var fence = regexp.MustCompile("(?sm)^```.*?^```$")

// code is a name with a dot as texts write it, and file what has a path or an ending.
var (
	code = regexp.MustCompile(`^\*?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*){1,2})(?:\(.*\))?$`)
	file = regexp.MustCompile(`[\w./-]*\w\.(?:go|md|sh|cfg|yaml|proto)\b`)
	dir  = regexp.MustCompile(`^(?:core|plugin|test|docs|examples|bench|deploy|request|coremain|pb)(?:/[\w.-]+)*/?$`)
)

// placeholders stand for a name that the reader puts there.
var placeholders = []string{"NAME", "module/path", "your"}

// TestPagesNameWhatIsThere looks up each name, file and folder that a page has in backquotes, and each file in its pictures.
func TestPagesNameWhatIsThere(t *testing.T) {
	x, looked := theIndex()(t), 0
	for name := range longest {
		text := page(t, name)
		for _, q := range quotedIn(fence.ReplaceAllString(text, "")) {
			if slices.ContainsFunc(placeholders, func(p string) bool { return strings.Contains(q, p) }) {
				continue
			}
			switch m := code.FindStringSubmatch(q); {
			case file.MatchString(q):
			case dir.MatchString(q):
				looked++
				if !x.hasFolder(strings.TrimSuffix(q, "/")) && !x.files[q] {
					t.Errorf("%s: there is no folder %s", name, q)
				}
			case m != nil:
				looked++
				if _, ok := x.resolve(nil, m[1]); !ok {
					t.Errorf("%s: there is no %s", name, q)
				}
			}
		}
		for _, f := range file.FindAllString(text, -1) {
			if strings.Contains(f, "NAME") || strings.HasPrefix(f, "//") {
				continue
			}
			looked++
			if !x.hasFile(name, f) {
				t.Errorf("%s: there is no file %s", name, f)
			}
		}
	}
	if looked < 100 {
		t.Errorf("only %d names were looked up", looked)
	}
}

// TestPicturesNameFilesThatAreThere does so for the comments of packages.
func TestPicturesNameFilesThatAreThere(t *testing.T) {
	x := theIndex()(t)
	for from, p := range x.packages {
		for _, f := range file.FindAllString(p.doc, -1) {
			ok := x.under(from, f)
			if strings.Contains(f, "/") || !strings.HasSuffix(f, ".go") && !strings.HasSuffix(f, ".md") {
				ok = x.hasFile("", f)
			}
			if !ok {
				t.Errorf("%s: its comment names %s, which is not there", from, f)
			}
		}
	}
}

// manyFiles is from how many on the comment of a package has to say what is in which file.
const manyFiles = 30

// byName are files whose names say all, and the variants of one file for several systems.
var byName = regexp.MustCompile(`^(?:setup|metrics|status|z\w+)\.go$|_(?:linux|other|portable|unix|windows|auto)\.go$`)

// TestManyFilesAreTold looks for each file of a large package in its comment.
func TestManyFilesAreTold(t *testing.T) {
	files := map[string][]string{} // by folder
	for f := range theIndex()(t).files {
		if strings.HasSuffix(f, ".go") && !strings.HasSuffix(f, "_test.go") {
			files[path.Dir(f)] = append(files[path.Dir(f)], path.Base(f))
		}
	}
	looked := 0
	for dir, names := range files {
		if len(names) < manyFiles || !strings.HasPrefix(dir, "core/") && !strings.HasPrefix(dir, "plugin/") {
			continue
		}
		looked++
		doc := theIndex()(t).packages[dir].doc
		for _, name := range names {
			if name != "doc.go" && !byName.MatchString(name) && !strings.Contains(doc, name) {
				t.Errorf("%s/doc.go does not tell what is in %s", dir, name)
			}
		}
	}
	if looked < 4 {
		t.Errorf("only %d packages were looked at", looked)
	}
}

// hasFile reports whether a page means a file of ours: from the root, from the page's folder, or one of that name in any.
func (x *index) hasFile(page, name string) bool {
	if x.files[name] || x.files[filepath.ToSlash(filepath.Join(filepath.Dir(page), name))] {
		return true
	}
	for f := range x.files {
		if strings.HasSuffix(f, "/"+name) && !strings.Contains(name, "/") {
			return true
		}
	}
	return false
}

// under reports whether there is such a file in a folder, or in one below it.
func (x *index) under(folder, name string) bool {
	for f := range x.files {
		if rest, ok := strings.CutPrefix(f, folder+"/"); ok && (rest == name || strings.HasSuffix(rest, "/"+name)) {
			return true
		}
	}
	return false
}

func (x *index) hasFolder(name string) bool {
	for f := range x.files {
		if strings.HasPrefix(f, name+"/") {
			return true
		}
	}
	return false
}

// TestPackagesTable compares the table of packages with the packages of core and plugin/pkg.
func TestPackagesTable(t *testing.T) {
	x, told := theIndex()(t), map[string]bool{}
	for _, row := range rowsOf(section(t, "docs/ARCHITECTURE.md", "Packages")) {
		for _, name := range quotedIn(row[0]) {
			if told[name] {
				t.Errorf("%s stands there twice", name)
			}
			told[name] = true
			if x.packages[name] == nil {
				t.Errorf("there is no package %s", name)
			}
		}
	}
	for dir := range x.packages {
		if (dir == "core" || strings.HasPrefix(dir, "core/") || strings.HasPrefix(dir, "plugin/pkg/")) && !told[dir] {
			t.Errorf("%s does not stand in the table of packages", dir)
		}
	}
}

// step is one of a query's way: its file, and what is called there.
var step = regexp.MustCompile("^\\d+\\. `([\\w./]+\\.go)` ((?:`[\\w.]+`(?:, )?)+)")

// TestQuerysWay finds each function on a query's way in the file that the step says.
func TestQuerysWay(t *testing.T) {
	x, steps, lines := theIndex()(t), 0, 0
	for line := range strings.Lines(section(t, "docs/ARCHITECTURE.md", "A query's way")) {
		lines++
		m := step.FindStringSubmatch(line)
		if m == nil {
			if regexp.MustCompile(`^\d+\.`).MatchString(line) {
				t.Errorf("a step without file and function: %s", line)
			}
			continue
		}
		steps++
		for _, name := range quotedIn(m[2]) {
			home := x.packages[filepath.Dir(m[1])]
			if home == nil {
				t.Errorf("there is no package of %s", m[1])
				continue
			}
			if files, _ := x.resolve(home, name); !slices.Contains(files, m[1]) {
				t.Errorf("%s does not stand in %s, but in %v", name, m[1], files)
			}
		}
	}
	if steps < 20 || lines > 42 {
		t.Errorf("%d steps in %d lines", steps, lines)
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

// TestLinks follows the links of all pages to files of ours.
func TestLinks(t *testing.T) {
	links := 0
	sources(t, func(path string) {
		if filepath.Ext(path) != ".md" {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			to := string(m[1])
			if strings.Contains(to, "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), to)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
	if links < 10 {
		t.Errorf("only %d links were followed", links)
	}
}

// goBlock is Go code in a page, below a line that says which file it is from.
var goBlock = regexp.MustCompile("(?s)<!-- (\\S+) -->\n```go\n(.*?)```")

// TestCodeIsCopied finds the Go code of pages in the files that it was copied from: whole lines, "..." standing for some that are left out.
func TestCodeIsCopied(t *testing.T) {
	for _, name := range []string{"docs/PLUGINS.md"} {
		text := page(t, name)
		all := goBlock.FindAllStringSubmatch(text, -1)
		if len(all) < 4 || len(all) != strings.Count(text, "```go") {
			t.Errorf("%s: %d blocks of code, %d of them say from where", name, strings.Count(text, "```go"), len(all))
		}
		for _, m := range all {
			from, err := os.ReadFile(filepath.Join("..", "..", m[1]))
			if err != nil {
				t.Error(err)
				continue
			}
			for _, part := range strings.Split(m[2], "// ...\n") {
				if !bytes.Contains(append([]byte("\n"), from...), []byte("\n"+part)) {
					t.Errorf("%s: not in %s:\n%s", name, m[1], part)
				}
			}
		}
	}
}

// TestExamplesAreShort: an example that needs scrolling is none.
func TestExamplesAreShort(t *testing.T) {
	files, err := filepath.Glob("../../examples/plugin/*/*.go")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		text := page(t, place(f))
		if n := strings.Count(text, "\n"); n > 60 {
			t.Errorf("%s has %d lines", f, n)
		}
	}
}
