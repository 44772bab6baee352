package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// book is all pages for people.
type book struct {
	root    string
	plugins []page // by name
	docs    []page // in the order of docOrder, then by name
}

// page is one of them.
type page struct {
	path  string // from the root, with slashes
	title string // what its first line says
	text  string // all of it, Markdown
}

// docOrder is in which order a reader needs the pages of docs.
var docOrder = []string{"START", "COREFILE", "FORWARDING", "RESOLVER", "ZONES", "ENCRYPTION", "KUBERNETES", "MIGRATION", "OPERATIONS", "TUNING",
	"TROUBLESHOOTING", "DIFFERENCES", "PLUGINS", "ARCHITECTURE", "GLOSSARY"}

// read reads the pages below a folder of sources.
func read(root string) (*book, error) {
	b := &book{root: root}
	var err error
	if b.plugins, err = pagesAt(root, "plugin/*/README.md"); err != nil {
		return nil, err
	}
	if b.docs, err = pagesAt(root, "docs/*.md"); err != nil {
		return nil, err
	}
	slices.SortFunc(b.plugins, func(x, y page) int { return strings.Compare(x.title, y.title) })
	place := func(p page) int {
		i := slices.Index(docOrder, strings.TrimSuffix(filepath.Base(p.path), ".md"))
		if i < 0 {
			return len(docOrder)
		}
		return i
	}
	slices.SortStableFunc(b.docs, func(x, y page) int { return place(x) - place(y) })
	if len(b.plugins) == 0 || len(b.docs) == 0 {
		return nil, fmt.Errorf("%s: %d READMEs of plugins and %d pages in docs: the flag -root must name the folder of the sources",
			root, len(b.plugins), len(b.docs))
	}
	return b, nil
}

func pagesAt(root, pattern string) (all []page, err error) {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		path, err := filepath.Rel(root, f)
		if err != nil {
			return nil, err
		}
		title, ok := strings.CutPrefix(strings.SplitN(string(text), "\n", 2)[0], "# ")
		if !ok {
			return nil, fmt.Errorf("%s: the first line must be \"# TITLE\"", f)
		}
		all = append(all, page{filepath.ToSlash(path), title, string(text)})
	}
	return all, nil
}

// section is what stands below a heading "## NAME" of the page, without that line. It reports false if there is none.
func (p page) section(name string) (text string, ok bool) {
	_, rest, ok := strings.Cut(p.text, "\n## "+name+"\n")
	if !ok {
		return "", false
	}
	if at := outside(rest, "\n## "); at >= 0 {
		rest = rest[:at]
	}
	return strings.Trim(rest, "\n"), true
}

// outside is where text has a mark outside of fenced code, or -1.
func outside(text, mark string) int {
	from := 0
	for {
		at := strings.Index(text[from:], mark)
		if at < 0 {
			return -1
		}
		if at += from; strings.Count(text[:at], "\n```")%2 == 0 {
			return at
		}
		from = at + 1
	}
}

// included is a line of a frame in man that stands for a section of a page.
var included = regexp.MustCompile(`(?m)^<!-- (\S+): (.+) -->$`)

// frame is a file of man with the sections that it includes.
func (b *book) frame(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(b.root, "man", name))
	if err != nil {
		return "", err
	}
	out := included.ReplaceAllStringFunc(string(text), func(line string) string {
		m := included.FindStringSubmatch(line)
		for _, p := range b.docs {
			if p.path != m[1] {
				continue
			}
			if s, ok := p.section(m[2]); ok {
				return s
			}
		}
		err = fmt.Errorf("man/%s includes the section %q of %s, which is not there", name, m[2], m[1])
		return ""
	})
	return out, err
}
